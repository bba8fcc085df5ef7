#!/bin/bash
# Sweeps the files of the service that this command is named after.
source /app/lib/sweep.sh
sweep_main "$@"
