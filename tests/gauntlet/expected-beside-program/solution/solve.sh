#!/bin/bash
set -e
cat > /app/errors.sh <<'EOF'
#!/bin/bash
awk '$4 >= 500 { print $1 }' /app/access.log | LC_ALL=C sort -u
EOF
chmod 755 /app/errors.sh
