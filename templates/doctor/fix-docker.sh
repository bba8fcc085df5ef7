#!/bin/sh
# Provides what `termsmith doctor` finds missing, on Debian and systems based on it.
# `termsmith doctor --fix` runs it once for each missing part:
#
#   engine      installs Docker, removes files of dead daemons, starts dockerd
#   base-image  pulls debian:bookworm-slim, or builds it from a Debian mirror
#   clock       installs libfaketime
#
# It prints each change before it makes it, and removes only stale files below /run. Packages and
# daemon need root: the user is root, or `sudo` works without a password. ENGINE_ADDRESS is the
# address of an engine that answers. Tests set FIX_ROOT to a folder in place of `/`.
set -eu
root=${FIX_ROOT-}
PATH=${PATH-}:$root/usr/local/sbin:$root/usr/local/bin:$root/usr/sbin:$root/usr/bin:$root/sbin:$root/bin
image=debian:bookworm-slim suite=bookworm
socket=$root/var/run/docker.sock daemon_log=$root/var/log/docker.log
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

say() { printf '%s\n' "$*"; }
fail() { printf '%s\n' "$*" >&2; exit 1; }
last_lines() { tail -n 12 "$1" 2>/dev/null | sed 's/^/  | /'; }
failed() { fail "\`$1\` failed
$(last_lines "$2")"; }

# Sets `sudo` to the prefix of commands that need root. $1 is the command that the error suggests.
need_root() {
    can_be_root || fail "this needs root, and \`sudo\` asks for a password or is not installed
hint: run as root: \`$1\`; then run the doctor again"
}

can_be_root() {
    sudo=
    [ "$(id -u)" = 0 ] || { sudo -n true 2>/dev/null && sudo='sudo -n'; }
}

# Reads the name of the system (os-release(5)). Fails if its packages are not Debian's.
need_debian() {
    ID='' ID_LIKE='' NAME='an unknown system' PRETTY_NAME=''
    for file in "$root/etc/os-release" "$root/usr/lib/os-release"; do
        if [ -r "$file" ]; then . "$file"; break; fi
    done
    case " $ID $ID_LIKE " in *' debian '* | *' ubuntu '*) return ;; esac
    fail "${PRETTY_NAME:-$NAME} is not based on Debian, so its package names are unknown
hint: install $1 yourself (names of Debian), then run the doctor again"
}

install() {
    need_debian "$*"
    need_root "apt-get update && apt-get install -y --no-install-recommends --no-remove $*"
    say "Installing $* (system packages, by apt-get) …"
    # Unattended upgrades hold the lock for a minute or two.
    apt="$sudo env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=180"
    $apt update -q >"$tmp/update" 2>&1 </dev/null && lists=fetched || lists=old
    # Old lists may be enough.
    if $apt install -y --no-install-recommends --no-remove "$@" >"$tmp/log" 2>&1 </dev/null; then return; fi
    if [ $lists = old ]; then failed 'apt-get update' "$tmp/update"; fi
    failed "apt-get install $*" "$tmp/log"
}

# Whether process $1 lives and is the program $2. Without an init process nobody reaps a zombie.
is_running() {
    stat=$(cat "$root/proc/$1/stat" 2>/dev/null) || return 1
    name=${stat%)*} state=${stat##*) }
    case $state in Z* | X*) return 1 ;; esac
    [ "${name#*(}" = "$2" ]
}

# Whether a process accepts connections at the socket $1, as far as is known. /var/run is /run.
is_listening() {
    if [ ! -r "$root/proc/net/unix" ]; then return; fi
    awk -v path="$1" '$4 == "00010000" && ($8 == path || $8 == "/var" path) { found = 1 }
        END { exit !found }' "$root/proc/net/unix"
}

# dockerd refuses to start while its pid file names any living process. It waits for a containerd
# whose pid file or socket exists although the process does not. A machine that was restored from a
# snapshot has such files, and so has a restarted container.
remove_stale_files() {
    stale='' own=/run/docker/containerd system=/run/containerd
    while read -r program pid_file sockets; do
        if pid=$($sudo cat "$root$pid_file" 2>/dev/null); then
            if is_running "$pid" "$program"; then continue; fi
            stale="$stale $root$pid_file"
        fi
        for path in $sockets; do
            if $sudo test -e "$root$path" && ! is_listening "$path"; then stale="$stale $root$path"; fi
        done
    done <<END
dockerd /run/docker.pid /run/docker.sock
dockerd /run/docker-ssd.pid
containerd $own/containerd.pid $own/containerd.sock $own/containerd.sock.ttrpc $own/containerd-debug.sock
containerd $system/containerd.pid $system/containerd.sock $system/containerd.sock.ttrpc
END
    [ -n "$stale" ] || return 0
    say "Removing stale files of a dead daemon:$stale …"
    $sudo rm -f -- $stale
}

answers() { timeout 10 docker -H "unix://$socket" version >/dev/null 2>&1 </dev/null; }

# Waits until the daemon answers, or refuses this user, which the doctor reports. A daemon makes its
# socket before it gives it to its group. $1 is the daemon's process, if that is known.
wait_for_daemon() {
    say 'Waiting for dockerd to answer …'
    began=$(date +%s) refused=0
    until answers; do
        if [ -S "$socket" ] && [ ! -w "$socket" ]; then refused=$((refused + 1)); else refused=0; fi
        if [ $refused = 3 ]; then return; fi
        seconds=$(($(date +%s) - began))
        if [ $seconds -ge 60 ] || { [ -n "$1" ] && ! is_running "$1" dockerd && ! is_running "$1" sh; }; then
            fail "dockerd does not answer on \`$socket\` after $seconds s
$(last_lines "$daemon_log")
hint: read the log (\`$daemon_log\`, or \`journalctl -u docker\`), stop the daemon, and run the doctor again"
        fi
        sleep 0.2
    done
}

engine() {
    command -v dockerd >/dev/null || install docker.io iptables
    # Newer releases have the command in a package of its own.
    command -v docker >/dev/null || install docker-cli
    if answers; then return; fi
    pid=$(cat "$root/run/docker.pid" 2>/dev/null) || pid=
    if [ -n "$pid" ] && is_running "$pid" dockerd; then wait_for_daemon "$pid"; return; fi
    need_root 'systemctl start docker, or dockerd'
    if [ -d "$root/run/systemd/system" ]; then
        say 'Starting Docker (systemctl start docker) …'
        $sudo systemctl start docker >"$tmp/log" 2>&1 || failed 'systemctl start docker' "$tmp/log"
        wait_for_daemon ''
    else
        remove_stale_files
        say "Starting dockerd in the background (no systemd runs here; log: $daemon_log) …"
        # `exec` keeps the process id that `sh` prints.
        wait_for_daemon "$($sudo setsid --fork sh -c 'cd / && echo $$ && exec "$0" >>"$1" 2>&1 </dev/null' \
            "$(command -v dockerd)" "$daemon_log")"
    fi
}

base_image() {
    command -v docker >/dev/null || install docker-cli
    if [ -n "${ENGINE_ADDRESS-}" ]; then export DOCKER_HOST="$ENGINE_ADDRESS"; fi
    say "Pulling $image …"
    # Some networks drop packets silently, and an engine tries for minutes.
    if timeout 600 docker pull "$image" >"$tmp/log" 2>&1 </dev/null; then return; fi
    say "That failed, so the image is built here: $(tail -n 1 "$tmp/log")"
    need_debian "the image $image"
    missing='' sources=$tmp/debian.list from="Debian's archive"
    command -v mmdebstrap >/dev/null || missing=mmdebstrap
    set -- --keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    [ -f "$root${1#*=}" ] || missing="$missing debian-archive-keyring"
    [ -z "$missing" ] || install $missing
    # This system's mirrors of Debian that a container can reach, and whose address has no password.
    apt-get indextargets --format '$(SITE) $(CODENAME)' 'Created-By: Packages' 'Component: main' 'Origin: Debian' |
        sed -nE "s%^(https?://[^@/ ]+(/[^ ]*)?) [a-z]+(-updates|-security)?\$%deb \1 $suite\3 main%p" |
        sort -u >"$sources"
    if [ -s "$sources" ]; then from="this system's mirror"; else sources=; fi
    # Otherwise apt in the image could not verify its mirror.
    if grep -qs https: "$sources"; then set -- "$@" --include=ca-certificates; fi
    # Slim images have no such files, and dpkg keeps them out of packages that a build installs.
    for rule in 'exclude=doc/*' 'include=doc/*/copyright' 'exclude=info/*' 'exclude=lintian/*' \
        'exclude=man/*' 'exclude=locale/*' 'include=locale/locale.alias'; do
        set -- "$@" --dpkgopt="path-${rule%%=*}=/usr/share/${rule#*=}"
    done
    say "Building $image with mmdebstrap (about 20 s) from $from …"
    # Without root mmdebstrap uses user namespaces. dpkg need not sync the files of an image.
    can_be_root || true
    $sudo mmdebstrap --variant=minbase --format=tar --dpkgopt=force-unsafe-io --skip=chroot/policy-rc.d \
        --aptopt='Acquire::Languages "none"' "$@" --customize-hook="$customize" \
        $suite "$tmp/base.tar" ${sources:+-} <"${sources:-/dev/null}" >"$tmp/log" 2>&1 || failed mmdebstrap "$tmp/log"
    # `termsmith clean` keeps an image with this label.
    docker import --change 'CMD ["bash"]' --change 'LABEL termsmith.bootstrap=1' \
        --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
        "$tmp/base.tar" "$image" >"$tmp/log" 2>&1 || failed 'docker import' "$tmp/log"
}

# Makes a minimal tree ($1) like Debian's slim images, so that builds behave the same.
customize='set -e
# Packages that a build installs must not start their services.
printf "#!/bin/sh\nexit 101\n" >"$1/usr/sbin/policy-rc.d"
chmod 755 "$1/usr/sbin/policy-rc.d"
# Downloaded packages and the caches of apt would stay in the layers.
rm -f "$1"/var/cache/apt/*.bin
clean="{ \"rm -f /var/cache/apt/archives/*.deb /var/cache/apt/archives/partial/*.deb /var/cache/apt/*.bin || true\"; };"
printf "%s\n" "DPkg::Post-Invoke $clean" "APT::Update::Post-Invoke $clean" \
    "Dir::Cache::pkgcache \"\";" "Dir::Cache::srcpkgcache \"\";" >"$1/etc/apt/apt.conf.d/docker-clean"
# Certificates that this machine trusts beyond the public ones, e.g. of a proxy that inspects TLS.
extra=/usr/local/share/ca-certificates
if [ -d "$extra" ]; then mkdir -p "$1$extra"; cp -rL "$extra/." "$1$extra/"; fi
if [ -x "$1/usr/sbin/update-ca-certificates" ]; then chroot "$1" update-ca-certificates >/dev/null; fi
# These are of the machine. An engine puts its own in place.
rm -f "$1/etc/hostname" "$1/etc/resolv.conf"'

case ${1-} in
engine) engine ;;
base-image) base_image ;;
clock) install libfaketime ;;
*) fail 'usage: fix-docker.sh engine|base-image|clock' ;;
esac
