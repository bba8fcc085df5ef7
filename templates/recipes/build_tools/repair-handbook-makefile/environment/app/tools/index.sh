#!/bin/sh
# index.sh TITLE PAGES TABLES: the index, with the title that stands in the first line of each page.
echo "<h1>$1</h1>"
echo "<ul>"
for page in $2; do
    echo "<li><a href=\"$page.html\">$(sed -n '1s/^= //p' "pages/$page.txt")</a></li>"
done
for table in $3; do
    echo "<li><a href=\"tables/$table.html\">$table</a></li>"
done
echo "</ul>"
