#!/bin/bash
# Violates: "Header lines follow, each ended by CR LF, up to the first empty line or the end of the payload."
# Shown by: payload 'GET / HTTP/1.1' CR LF 'X-Note: a' LF 'Host: evil.example' CR LF 'Host: good.example' CR LF CR LF: the line that begins with host: is
#   the one with good.example, but a bare LF is taken for a line end too, and the URL is http://evil.example/.
#   Also 'X-Note: a' LF LF 'b' CR LF before the Host line: this is no empty line, but url becomes '-'
set -euo pipefail

cat > /app/lib/hex.awk <<'EOF'
# hex.awk - the bytes of the packet at hand, which is HEX (in lower case)

BEGIN {
    for (BYTE_I = 0; BYTE_I < 256; BYTE_I++) {
        BYTE_VALUE[sprintf("%02x", BYTE_I)] = BYTE_I
        BYTE_CHAR[sprintf("%02x", BYTE_I)] = sprintf("%c", BYTE_I)
    }
}

function byte(at) {
    return BYTE_VALUE[substr(HEX, 2 * at + 1, 2)]
}

function word(at) {
    return byte(at) * 256 + byte(at + 1)
}

function address(at) {
    return byte(at) "." byte(at + 1) "." byte(at + 2) "." byte(at + 3)
}

# the bytes from..to-1 as a string
function text(from, to,    i, s) {
    s = ""
    for (i = from; i < to; i++)
        s = s BYTE_CHAR[substr(HEX, 2 * i + 1, 2)]
    return s
}
EOF

cat > /app/lib/packet.awk <<'EOF'
# packet.awk - takes a raw IPv4 packet apart
#
# parse() sets SRC DST PROTO SPORT DPORT URL and returns 1, or returns 0 if
# the packet is malformed.

BEGIN {
    PROTO_NAME[1] = "icmp"
    PROTO_NAME[6] = "tcp"
    PROTO_NAME[17] = "udp"
}

function parse(hex,    n, ihl, total, number, doff) {
    HEX = tolower(hex)
    SPORT = DPORT = URL = "-"
    n = int(length(hex) / 2)

    if (n < 20 || int(byte(0) / 16) != 4)
        return 0
    ihl = byte(0) % 16 * 4
    total = word(2)
    if (ihl < 20 || ihl > total || total > n)
        return 0
    # from here on only total counts: what follows it is padding

    SRC = address(12)
    DST = address(16)
    number = byte(9)
    PROTO = (number in PROTO_NAME) ? PROTO_NAME[number] : number ""

    # a later fragment: what follows is no TCP or UDP header
    # (the upper three bits are flags, the other 13 the offset)
    if (word(6) % 8192 > 0)
        return 1

    if (PROTO == "tcp") {
        if (ihl + 20 > total)
            return 0
        doff = int(byte(ihl + 12) / 16) * 4
        if (doff < 20 || ihl + doff > total)
            return 0
        SPORT = word(ihl)
        DPORT = word(ihl + 2)
        URL = find_url(text(ihl + doff, total))
    } else if (PROTO == "udp") {
        if (ihl + 8 > total)
            return 0
        SPORT = word(ihl)
        DPORT = word(ihl + 2)
    }
    return 1
}
EOF

cat > /app/lib/url.awk <<'EOF'
# url.awk - the URL that a TCP payload asks for, in its normal form

function find_url(data,    n, line, i, at, host, target) {
    # line[n] is what no CR LF ends
    n = split(data, line, /\r?\n/)
    if (n < 2 || line[1] !~ /^[A-Z]+ \/[^ ]* HTTP\/1\.[0-9]$/)
        return "-"

    host = ""
    for (i = 2; i < n && line[i] != ""; i++)
        if (tolower(substr(line[i], 1, 5)) == "host:") {
            host = tolower(substr(line[i], 6))
            sub(/^[ \t]+/, "", host)
            sub(/[ \t]+$/, "", host)
            break
        }
    if (host == "")
        return "-"
    sub(/:80$/, "", host)

    target = line[1]
    sub(/^[A-Z]+ /, "", target)
    sub(/ [^ ]*$/, "", target)
    at = index(target, "?")
    if (at == 0)
        return "http://" host dots(unescape(target))
    return "http://" host dots(unescape(substr(target, 1, at - 1))) unescape(substr(target, at))
}

# %41 becomes A, %c3 becomes %C3
function unescape(s,    out, c) {
    out = ""
    while (match(s, /%[0-9A-Fa-f][0-9A-Fa-f]/)) {
        c = BYTE_CHAR[tolower(substr(s, RSTART + 1, 2))]
        if (c !~ /^[A-Za-z0-9._~-]$/)
            c = toupper(substr(s, RSTART, 3))
        out = out substr(s, 1, RSTART - 1) c
        s = substr(s, RSTART + 3)
    }
    return out s
}

# takes "." and ".." out of a path (RFC 3986, section 5.2.4)
function dots(path,    n, seg, i, m, keep, out) {
    n = split(path, seg, "/")
    m = 0
    for (i = 2; i <= n; i++) {
        if (seg[i] == "..") {
            if (m > 0)
                m--
        } else if (seg[i] != ".") {
            keep[++m] = seg[i]
            continue
        }
        if (i == n)
            keep[++m] = ""
    }
    out = ""
    for (i = 1; i <= m; i++)
        out = out "/" keep[i]
    return out
}
EOF

cat > /app/lib/rules.awk <<'EOF'
# rules.awk - reads the rules and finds the one that a packet meets

function load_rules(file,    row, f) {
    NRULES = 0
    while ((getline row < file) > 0) {
        if (row ~ /^[ \t]*(#|$)/)
            continue
        split(row, f, " ")
        NRULES++
        R_NAME[NRULES] = f[1]
        R_VERDICT[NRULES] = f[2]
        R_PROTO[NRULES] = proto_name(f[3])
        R_SRC[NRULES] = f[4]
        R_SPORT[NRULES] = f[5]
        R_DST[NRULES] = f[6]
        R_DPORT[NRULES] = f[7]
        R_URL[NRULES] = f[8]
    }
    close(file)
}

# 6 and tcp are the same
function proto_name(p) {
    if (p !~ /^[0-9]+$/)
        return p
    p = int(p)
    return (p in PROTO_NAME) ? PROTO_NAME[p] : p ""
}

function ip_number(a,    o) {
    split(a, o, ".")
    return ((o[1] * 256 + o[2]) * 256 + o[3]) * 256 + o[4]
}

# only the first bits of the network's address count
function in_net(ip, net,    part, size) {
    if (net == "*")
        return 1
    if (split(net, part, "/") == 1)
        return ip_number(ip) == ip_number(net)
    size = 2 ^ (32 - part[2])
    return int(ip_number(ip) / size) == int(ip_number(part[1]) / size)
}

function port_fits(port, spec,    n, item, i, at, lo, hi) {
    if (spec == "*")
        return 1
    if (port == "-")
        return 0
    port = port + 0
    n = split(spec, item, ",")
    for (i = 1; i <= n; i++) {
        at = index(item[i], "-")
        if (at == 0) {
            lo = hi = item[i] + 0
        } else {
            lo = substr(item[i], 1, at - 1) + 0
            hi = substr(item[i], at + 1) + 0
        }
        if (port >= lo && port <= hi)
            return 1
    }
    return 0
}

function url_fits(url, prefix) {
    return prefix == "*" || (url != "-" && substr(url, 1, length(prefix)) == prefix "")
}

# the number of the first rule that fits, 0 if none does
function first_rule(    r) {
    for (r = 1; r <= NRULES; r++)
        if ((R_PROTO[r] == "*" || R_PROTO[r] == PROTO "") &&
            port_fits(SPORT, R_SPORT[r]) && port_fits(DPORT, R_DPORT[r]) &&
            url_fits(URL, R_URL[r]) &&
            in_net(SRC, R_SRC[r]) && in_net(DST, R_DST[r]))
            return r
    return 0
}
EOF


# awk takes a few names for something else than files ("-" for standard input),
# and CDPATH must not lead cd astray
sed -i \
    -e 's|^lib=.*|lib=$(CDPATH= cd -- "$(dirname -- "${BASH_SOURCE[0]}")" \&\& pwd)/lib|' \
    -e 's|^export LC_ALL=C RULES=\$1$|rules=$1\n[[ $rules == /* ]] \|\| rules=./$rules\nexport LC_ALL=C RULES=$rules|' \
    /app/explain.sh
chmod +x /app/explain.sh

/app/explain.sh /app/rules.txt /app/probes.tsv > /app/verdicts.tsv
