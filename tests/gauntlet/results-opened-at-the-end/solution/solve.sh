#!/bin/bash
set -e
cat > /app/roman.sh <<'EOF'
#!/bin/bash
n=$1 out=
values=(1000 900 500 400 100 90 50 40 10 9 5 4 1)
digits=(M CM D CD C XC L XL X IX V IV I)
for i in "${!values[@]}"; do
  while ((n >= values[i])); do out+=${digits[i]}; n=$((n - values[i])); done
done
echo "$out"
EOF
chmod 755 /app/roman.sh
