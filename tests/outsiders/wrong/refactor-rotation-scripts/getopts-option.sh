# violates: "If one NAME fails, the others are still done; the status is 1 if any failed, otherwise 0, and 2 if there is no NAME at all." - a NAME that begins with a hyphen (which the allowed characters include) counts as a wrong option: status 2, and the other names are not done; `--` is swallowed
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('solve.sh', 'if [ "${1:-}" = -c ]; then\n  settings=${2:-}\n  shift $(($# < 2 ? $# : 2))\nfi\n',
    'usage() {\n  echo "usage: rotate [-c FOLDER] NAME..." >&2\n  exit 2\n}\nwhile getopts c: option; do\n  case $option in\n    c) settings=$OPTARG ;;\n    *) usage ;;\n  esac\ndone\nshift $((OPTIND - 1))\n')
sub('solve.sh', 'if [ $# -eq 0 ]; then\n  echo "usage: rotate [-c FOLDER] NAME..." >&2\n  exit 2\nfi\n',
    '[ $# -gt 0 ] || usage\n')
E
