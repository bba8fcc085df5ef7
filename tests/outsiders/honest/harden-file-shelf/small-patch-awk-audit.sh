# differs: only the faulty lines are patched in place, each in another way than the reference (regular expression for names, relpath for the place, signature of fixed length); the audit is written by awk with its own judgement of names and iconv for UTF-8
cat > solve.sh <<'SOLVE'
#!/bin/bash
set -euo pipefail
cd /app/shelf
python3 - <<'PY'
def patch(file, *pairs):
    text = open(file).read()
    for old, new in pairs:
        assert text.count(old) == 1, (file, old)
        text = text.replace(old, new)
    open(file, "w").write(text)


patch("paths.py", (
'''    parts = [part for part in name.split("/") if part not in ("", ".")]
    if parts and parts[0] == "..":
        raise Forbidden("it leaves the shelf")
    if any(part.startswith(".") and part != ".." for part in parts):
        raise Forbidden("a hidden name")
''', '''    # A dot at the beginning of a segment, unless the segment is just that dot.
    if re.search(r"(?:\\A|/)\\.[^/]", name):
        raise Forbidden("a segment begins with a dot")
'''), (
'''    place = os.path.normpath(os.path.join(root, name))
    if not place.startswith(root):
        raise Forbidden("it lies outside")
''', '''    place = os.path.realpath(os.path.join(root, name))
    if os.path.relpath(place, root).split("/")[0] == "..":
        raise Forbidden("it lies outside")
'''))
patch("links.py", ("&sig=([0-9a-f]*)", "&sig=([0-9a-f]{64})"),
      ("any(sign(key, text).startswith(signature) for text in texts)", "any(sign(key, text) == signature for text in texts)"))
PY
mkdir -p ../audit
utf8() { printf '%b' "$(sed 's/\\/\\\\/g; s/%\(..\)/\\x\1/g' <<< "$1")" | iconv -f UTF-8 -t UTF-8 > /dev/null 2>&1; }
LC_ALL=C awk '
    $3 == 200 {
        request = $0
        for (i = 0; i < 3; i++) sub(/^[^ ]* /, "", request)
        verdict = "ask"
        if (request ~ /%([^0-9A-Fa-f]|$|.[^0-9A-Fa-f]|.$)/ || request ~ /%00/) verdict = "bad"
        name = request
        gsub(/%2[eE]/, ".", name)
        gsub(/%2[fF]/, "/", name)
        if (name == "" || name ~ /^\// || name ~ /(^|\/)\.[^\/]/) verdict = "bad"
        print verdict, NR, $2, request
    }' ../logs/access.log | while IFS=' ' read -r verdict line client request; do
    if [ "$verdict" = ask ] && utf8 "$request"; then continue; fi
    printf '%s,%s,%s\n' "$line" "$client" "$request"
done > ../audit/.rows
{ echo line,client,request; cat ../audit/.rows; } > ../audit/breaches.csv
rm ../audit/.rows
SOLVE
