import sys

print(sys.argv[1].lower().replace("-", "_"))
