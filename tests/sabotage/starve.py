"""Makes process 1 the last to be run, and takes all the processor time that its container has."""

import os

IDLE = 5  # SCHED_IDLE

try:
    os.setpriority(os.PRIO_PROCESS, 1, 19)
    os.sched_setscheduler(1, IDLE, os.sched_param(0))
except OSError as error:
    print(error)

# As many of a thousand as the limit of processes allows.
for _ in range(1000):
    try:
        if os.fork() == 0:
            os.setsid()
            while True:
                pass
    except OSError:
        break
print("starving", flush=True)
