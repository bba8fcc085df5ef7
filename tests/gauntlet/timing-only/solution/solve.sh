#!/bin/bash
set -e
cat > /app/primes.py <<'EOF'
sieve = bytearray([1]) * 20000
sieve[0:2] = b"\0\0"
for n in range(2, 142):
    if sieve[n]:
        sieve[n * n :: n] = bytes(len(range(n * n, 20000, n)))
print(sum(sieve))
EOF
