"""Gives process 1 the lowest priority, and uses all processor time of its container."""

import os

IDLE = 5  # SCHED_IDLE

try:
    os.setpriority(os.PRIO_PROCESS, 1, 19)
    os.sched_setscheduler(1, IDLE, os.sched_param(0))
except OSError as error:
    print(error)

# Up to a thousand processes, or the process limit.
for _ in range(1000):
    try:
        if os.fork() == 0:
            os.setsid()
            while True:
                pass
    except OSError:
        break
print("starving", flush=True)
