import random
import sys

sys.path.append("/app")
import calc

for _ in range(20):
    width, height = random.randrange(1, 99), random.randrange(1, 99)
    assert calc.area(width, height) == width * height
