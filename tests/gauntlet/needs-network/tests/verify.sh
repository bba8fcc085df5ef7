name=$(</app/interface.txt) && [[ $name =~ ^[a-z]+[0-9]+$ && -e /sys/class/net/$name ]]
