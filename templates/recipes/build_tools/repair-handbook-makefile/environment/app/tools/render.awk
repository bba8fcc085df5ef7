# Renders one page. -v title=… -v edition=…; reads layout/ and parts/.
function copy(file,    line, status) {
    while ((status = (getline line < file)) > 0) {
        gsub(/@TITLE@/, title, line)
        gsub(/@EDITION@/, edition, line)
        gsub(/@PAGE@/, page, line)
        print line
    }
    close(file)
    if (status < 0) {
        print FILENAME ": cannot read " file > "/dev/stderr"
        failed = 1
        exit 1
    }
}

FNR == 1 && /^= / { page = substr($0, 3); copy("layout/header.html"); next }
/^include: / { copy("parts/" $2 ".txt"); next }
/^table: / { print "<p><a href=\"tables/" $2 ".html\">" $2 "</a></p>"; next }
NF { print "<p>" $0 "</p>" }
END { if (!failed) copy("layout/footer.html") }
