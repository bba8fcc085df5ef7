"""Starts pytest without site hooks; ends with 0 only when every check ran and passed."""
import os
import sys

sys.path.append("/usr/lib/python3/dist-packages")
import pytest

sys.exit(pytest.main(["-q", "-c", "/dev/null", "--rootdir", "/tests", "--noconftest", "-p", "no:cacheprovider", "/tests/test_outputs.py"]))
