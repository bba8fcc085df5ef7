#!/bin/bash
set -e
cat > /app/run_tests.sh <<'EOF'
#!/bin/bash
. /app/lib.sh
for n in 1 5 12; do
  [ "$(double $n)" = $((n + n)) ] && [ "$(triple $n)" = $((n + n + n)) ] || { echo FAILED; exit 1; }
done
echo "ALL TESTS PASSED"
EOF
chmod 755 /app/run_tests.sh
