# The first file is the configuration, the second the table.
NR == FNR {
  if (split($0, part, / *= */) == 2 && $0 !~ /^ *#/) setting[part[1]] = part[2]
  next
}
FNR > 1 && is_low($1, $2, $3) { low[++count] = sprintf(setting["order"] == "quantity" ? "%09d %s" : "%2$s %1$09d", $3, $1) }
END {
  asort(low)
  for (n = 1; n <= count; n++) {
    split(low[n], word, " ")
    if (setting["order"] == "quantity") print word[2] setting["separator"] word[1] + 0
    else print word[1] setting["separator"] word[2] + 0
  }
}
