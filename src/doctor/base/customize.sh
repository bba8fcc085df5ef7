# Turns a minbase tree ($1) into what Debian's slim images are, so that builds behave the same on either.
set -e

# Packages that are installed by a build must not start their services.
printf '#!/bin/sh\nexit 101\n' >"$1/usr/sbin/policy-rc.d"
chmod 755 "$1/usr/sbin/policy-rc.d"

# Downloaded packages and apt's caches would stay in the layers.
rm -f "$1"/var/cache/apt/*.bin
cat >"$1/etc/apt/apt.conf.d/docker-clean" <<'END'
DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/archives/partial/*.deb /var/cache/apt/*.bin || true"; };
APT::Update::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/archives/partial/*.deb /var/cache/apt/*.bin || true"; };
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
END

# Certificates that this machine trusts beyond the public ones: behind a proxy that inspects TLS nothing else is
# verified. The package ca-certificates picks them up when a build installs it.
extra=/usr/local/share/ca-certificates
if [ -d "$extra" ]; then
    mkdir -p "$1$extra"
    cp -rL "$extra/." "$1$extra/"
    if [ -x "$1/usr/sbin/update-ca-certificates" ]; then
        chroot "$1" update-ca-certificates >/dev/null
    fi
fi

# This machine's; engines put their own in place.
rm -f "$1/etc/hostname" "$1/etc/resolv.conf"
