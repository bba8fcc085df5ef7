# violates: "`mode`: mode of the live log after a rotation, four octal digits;" - with the method copy the live log keeps the mode that it had
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('solve.sh', '    cp -p -- "$log" "$log.1"\n  else\n    mv -- "$log" "$log.1"\n  fi\n  : > "$log"\n  chmod "${s[mode]}" -- "$log"\n',
    '    cp -p -- "$log" "$log.1"\n    : > "$log"\n  else\n    mv -- "$log" "$log.1"\n    install -m "${s[mode]}" -- /dev/null "$log"\n  fi\n')
E
