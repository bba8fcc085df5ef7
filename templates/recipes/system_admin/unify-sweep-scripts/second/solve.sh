#!/bin/bash
# Reads the settings out of the old scripts with Perl; the library leaves all decisions to one gawk program.
set -eu
mkdir -p /app/lib
perl /solution/settings.pl /app/bin/sweep-* > /app/etc/sweep.conf
cp /solution/sweep.sh /app/lib/sweep.sh
chmod 640 /app/etc/sweep.conf
chmod 644 /app/lib/sweep.sh
for command in /app/bin/*; do
    printf '#!/bin/bash\n. /app/lib/sweep.sh && main "$@"\n' > "$command"
done
