import subprocess
import time

start = time.perf_counter()
subprocess.run(["/usr/bin/python3", "-I", "/app/primes.py"], check=True, timeout=10, stdout=subprocess.DEVNULL)
assert time.perf_counter() - start < 5
