# violates: "For each NAME in the given order it reads `FOLDER/NAME.conf`, FOLDER being `/app/etc/logturn.d` unless `-c` says otherwise, and does for it what the old scripts do." - changes into the service's folder and stays there, so that with a relative -c FOLDER (or LOG_ROOT) every NAME after the first rotated one is not found
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('solve.sh', '  rm -f -- "$log.${s[keep]}" "$log.${s[keep]}.gz"\n',
    '  cd -- "$folder" || return 1\n  log=./${s[file]}\n  rm -f -- "$log.${s[keep]}" "$log.${s[keep]}.gz"\n')
E
