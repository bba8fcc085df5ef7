import os
import random
import signal
import subprocess

VALUES = (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1)
DIGITS = ("M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I")
NOBODY = 65534


def roman(number):
    out = ""
    for value, digit in zip(VALUES, DIGITS):
        count, number = divmod(number, value)
        out += digit * count
    return out


# Every numeral that can be asked for, in every width of a column: with them this is the largest process of the container.
NUMERALS = {number: [roman(number).rjust(width) for width in range(100)] for number in range(1, 4000)}


def become_nobody():
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def run(number):
    program = ["/bin/bash", "/app/roman.sh", str(number)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, preexec_fn=become_nobody) as started:
        try:
            return started.stdout.readline()
        finally:
            killer = os.fork()
            if killer == 0:
                become_nobody()
                try:
                    os.kill(-1, signal.SIGKILL)
                finally:
                    os._exit(0)
            os.waitpid(killer, 0)


for number in [1, 3999, *random.sample(range(2, 3999), 10)]:
    assert run(number).strip() == NUMERALS[number][0], number
