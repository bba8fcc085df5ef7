#!/bin/bash
# In Perl, with addresses as strings of bits: a prefix contains what begins with it.
set -euo pipefail
perl /solution/audit.pl
