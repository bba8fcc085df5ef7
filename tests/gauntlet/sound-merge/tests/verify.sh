git() { /usr/bin/git -c safe.directory='*' -C /app/repo "$@"; }
[[ "$(git symbolic-ref --short HEAD)" == main && -z "$(git status --porcelain)" ]] || exit 1
[[ "$(git show main:one.txt main:two.txt main:three.txt)" == $'one\ntwo\nthree' ]] || exit 1
[[ "$(git rev-list --parents -n 1 main | /usr/bin/wc -w)" == 3 && "$(git rev-parse main^2)" == "$(git rev-parse side)" ]]
