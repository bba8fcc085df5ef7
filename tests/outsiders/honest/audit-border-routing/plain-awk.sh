# differs: one awk program on numbers instead of Python, compact JSON with bytes before flows, redundant.txt in the reverse order of the file
rm audit.py
cat > audit.awk <<'AWK'
function number(text,   part) {
    split(text, part, ".")
    return ((part[1] * 256 + part[2]) * 256 + part[3]) * 256 + part[4]
}
function size(length_) { return 2 ^ (32 - length_) }
function dotted(value,   text, i, byte) {
    for (i = 0; i < 4; i++) {
        byte = value % 256
        text = byte (i ? "." text : "")
        value = (value - byte) / 256
    }
    return text
}
# Sets lo, hi and len.
function prefix(text,   part) {
    if (text == "any") text = "0.0.0.0/0"
    if (split(text, part, "/") == 1) part[2] = 32
    len = part[2] + 0
    lo = number(part[1])
    lo -= lo % size(len)
    hi = lo + size(len) - 1
}
function covers(a, b) {
    return (proto[a] == "ip" || proto[a] == proto[b]) && \
        slo[a] <= slo[b] && shi[b] <= shi[a] && dlo[a] <= dlo[b] && dhi[b] <= dhi[a] && \
        plo[a] <= plo[b] && phi[b] <= phi[a]
}
BEGIN { rank["ospf"] = 1; rank["static"] = 2; rank["bgp"] = 3; rank["rip"] = 4; FS = "," }
{ sub(/\r$/, "") }
FILENAME ~ /routes.csv$/ && FNR > 1 {
    prefix($1)
    key = lo "/" len
    if (!(key in hop)) order[++networks] = key
    else if (rank[$3] > kind[key] || rank[$3] == kind[key] && $4 + 0 >= metric[key]) next
    hop[key] = $2; kind[key] = rank[$3]; metric[key] = $4 + 0
}
FILENAME ~ /filter.txt$/ {
    sub(/#.*/, "")
    n = split($0, word, /[ \t]+/)
    first = word[1] == "" ? 2 : 1
    if (word[first] == "") next
    rules++
    action[rules] = word[first]; proto[rules] = word[first + 1]
    prefix(word[first + 2]); slo[rules] = lo; shi[rules] = hi
    prefix(word[first + 3]); dlo[rules] = lo; dhi[rules] = hi
    # Without ports the range is wider than any that can be written.
    plo[rules] = -1; phi[rules] = 65536
    if (first + 4 <= n && word[first + 4] != "") {
        ends = split(word[first + 4], end, "-")
        plo[rules] = end[1] + 0; phi[rules] = end[ends] + 0
    }
}
FILENAME ~ /flows.csv$/ && FNR == 1 { print "id,route,next_hop,rule,verdict" > (out "/decisions.csv") }
FILENAME ~ /flows.csv$/ && FNR > 1 {
    source = number($2); target = number($3); port = $5 + 0; route = "-"; next_hop = "-"; rule = "-"
    verdict = "unreachable"
    for (len = 32; len >= 0; len--) {
        lo = target - target % size(len)
        if ((lo "/" len) in hop) {
            route = dotted(lo) "/" len
            next_hop = hop[lo "/" len]
            verdict = next_hop == "discard" ? "discarded" : ""
            break
        }
    }
    if (verdict == "") {
        rule = "default"; verdict = "deny"
        for (i = 1; i <= rules; i++)
            if ((proto[i] == "ip" || proto[i] == $4) && slo[i] <= source && source <= shi[i] && dlo[i] <= target && target <= dhi[i] && plo[i] <= port && port <= phi[i]) {
                rule = i; verdict = action[i]
                break
            }
        if (verdict == "permit") { if (!(next_hop in flows)) hops[++nhops] = next_hop; flows[next_hop]++; bytes[next_hop] += $6 }
    }
    print $1 "," route "," next_hop "," rule "," verdict > (out "/decisions.csv")
}
END {
    text = "{"
    for (i = 1; i <= nhops; i++) text = text (i > 1 ? "," : "") sprintf("\"%s\":{\"bytes\":%.0f,\"flows\":%d}", hops[i], bytes[hops[i]], flows[hops[i]])
    print text "}" > (out "/next_hops.json")
    printf "" > (out "/redundant.txt")
    for (i = networks; i >= 1; i--) {
        split(order[i], part, "/")
        for (len = part[2] - 1; len >= 0; len--) {
            key = (part[1] - part[1] % size(len)) "/" len
            if (key in hop) {
                if (hop[key] == hop[order[i]]) print dotted(part[1] + 0) "/" part[2] > (out "/redundant.txt")
                break
            }
        }
    }
    printf "" > (out "/dead_rules.txt")
    for (i = 2; i <= rules; i++)
        for (j = 1; j < i; j++)
            if (covers(j, i)) { print i > (out "/dead_rules.txt"); break }
}
AWK
cat > solve.sh <<'SOLVE'
#!/bin/bash
set -e
mkdir /app/result
cd /app/net
LC_ALL=C awk -v CONVFMT=%.0f -v OFMT=%.0f -v out=/app/result -f /solution/audit.awk routes.csv filter.txt flows.csv
SOLVE
