#!/bin/bash
set -e
printf '#!/bin/sh\necho $(($1 + $2))\n' > /app/repo/add.sh
