#!/bin/sh
# Builds the archives of /srv/packages. Their files are written and packed in one layer, so that none holds them unpacked.
set -e
trees=$(mktemp -d)
cd "$trees"
mkdir -p stocklist-0.9/DEBIAN
cat > stocklist-0.9/DEBIAN/conffiles <<'END'
/etc/stocklist.conf
END
mkdir -p stocklist-0.9/DEBIAN
cat > stocklist-0.9/DEBIAN/control <<'END'
Package: stocklist
Version: 0.9
Architecture: all
Maintainer: Stock Tools <tools@stock.example>
Section: utils
Priority: optional
Description: lists stock, without limits
END
mkdir -p stocklist-0.9/etc
cat > stocklist-0.9/etc/stocklist.conf <<'END'
# Settings of stocklist, which has none yet.
END
mkdir -p stocklist-0.9/usr/lib/stocklist
cat > stocklist-0.9/usr/lib/stocklist/stocklist <<'END'
#!/bin/sh
# Lists every item with its quantity.
exec cut -d, -f1,2 "$1"
END
mkdir -p stockwatch-2.0/DEBIAN
cat > stockwatch-2.0/DEBIAN/conffiles <<'END'
/etc/stockwatch.conf
END
mkdir -p stockwatch-2.0/DEBIAN
cat > stockwatch-2.0/DEBIAN/control <<'END'
Package: stockwatch
Version: 2.0
Architecture: all
Maintainer: Stock Tools <tools@stock.example>
Section: utils
Priority: optional
Depends: stockwatch-rules (>= 2.0)
Conflicts: stocklist
Description: lists what is low in stock
END
mkdir -p stockwatch-2.0/etc
cat > stockwatch-2.0/etc/stockwatch.conf <<'END'
# Settings of stockwatch: NAME = VALUE.

# Items below this quantity are low.
limit = 5
# limit.SHELF = N is for the items of one shelf.
limit.cold = 12

# By item or by quantity.
order = item

# Between item and quantity.
separator = :
END
mkdir -p stockwatch-2.0/usr/lib/stockwatch
cat > stockwatch-2.0/usr/lib/stockwatch/main.awk <<'END'
# The first file is the configuration, the second the table.
NR == FNR {
  if (split($0, part, / *= */) == 2 && $0 !~ /^ *#/) setting[part[1]] = part[2]
  next
}
FNR > 1 && is_low($1, $2, $3) { low[++count] = sprintf(setting["order"] == "quantity" ? "%09d %s" : "%2$s %1$09d", $3, $1) }
END {
  asort(low)
  for (n = 1; n <= count; n++) {
    split(low[n], word, " ")
    if (setting["order"] == "quantity") print word[2] setting["separator"] word[1] + 0
    else print word[1] setting["separator"] word[2] + 0
  }
}
END
mkdir -p stockwatch-2.0/usr/lib/stockwatch
cat > stockwatch-2.0/usr/lib/stockwatch/stockwatch <<'END'
#!/bin/sh
# stockwatch FILE: lists the items of a table `item,shelf,quantity` that are low in stock.
exec gawk -F, -f /usr/lib/stockwatch/rules.awk -f /usr/lib/stockwatch/main.awk /etc/stockwatch.conf "$1"
END
mkdir -p stockwatch-rules-1.4/DEBIAN
cat > stockwatch-rules-1.4/DEBIAN/control <<'END'
Package: stockwatch-rules
Version: 1.4
Architecture: all
Maintainer: Stock Tools <tools@stock.example>
Section: utils
Priority: optional
Description: rules of stockwatch for low stock
END
mkdir -p stockwatch-rules-1.4/usr/lib/stockwatch
cat > stockwatch-rules-1.4/usr/lib/stockwatch/rules.awk <<'END'
# Rules of the old kind: one limit for all shelves.
function is_low(item, shelf, quantity) { return quantity < setting["limit"] }
END
mkdir -p stockwatch-rules-2.1/DEBIAN
cat > stockwatch-rules-2.1/DEBIAN/control <<'END'
Package: stockwatch-rules
Version: 2.1
Architecture: all
Maintainer: Stock Tools <tools@stock.example>
Section: utils
Priority: optional
Description: rules of stockwatch for low stock
END
mkdir -p stockwatch-rules-2.1/usr/lib/stockwatch
cat > stockwatch-rules-2.1/usr/lib/stockwatch/rules.awk <<'END'
# A shelf can have a limit of its own: `limit.SHELF = N`.
function is_low(item, shelf, quantity,    own) {
  own = "limit." shelf
  return quantity < (own in setting ? setting[own] : setting["limit"])
}
END
chmod 755 */usr/lib/stocklist/stocklist */usr/lib/stockwatch/stockwatch
for tree in *; do
  dpkg-deb --root-owner-group --build "$tree" /srv/packages > /dev/null
done
rm -r "$trees"
