import random
import sys

sys.path.append("/app")
import calc

for _ in range(20):
    width, height = random.randrange(1, 99), random.randrange(1, 99)
    expected = width * height
    result = calc.area(width, height)
    assert type(result) is int and result == expected
