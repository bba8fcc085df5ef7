# differs: the CSV files have no line end after the last row, summary.json has sorted keys and tabs, and the program stays as /app/trace.py
python3 - <<'E'
def sub(name, old, new):
    text = open(name).read()
    assert text.count(old) == 1, (name, old)
    open(name, 'w').write(text.replace(old, new))


sub('routes.py', '    }, sys.stdout, indent=2)',
    '    }, sys.stdout, indent="\\t", sort_keys=True)')
E
cat >> solve.sh <<'S'
# No line end after the last row.
for file in /app/out/*.csv; do
  truncate -s -1 "$file"
done
# For the next time.
cp /solution/routes.py /app/trace.py
S
