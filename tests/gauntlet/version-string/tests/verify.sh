[[ -x /usr/local/bin/wordtool && "$(/usr/local/bin/wordtool --version)" == *"wordtool 2.4.1"* ]]
