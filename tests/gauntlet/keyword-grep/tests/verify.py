import re

source = open("/app/retry.py").read()
for word in ("import time", "def fetch", "max_retries", "time.sleep", "except TimeoutError"):
    assert word in source, word
