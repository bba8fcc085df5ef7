import sys

sys.path.append("/app")
from calc import area


def test_area():
    assert area(6, 7) == 42
