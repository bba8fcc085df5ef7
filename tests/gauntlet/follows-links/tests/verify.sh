/usr/bin/cmp -s /app/errors.txt /tests/pristine/expected.txt
