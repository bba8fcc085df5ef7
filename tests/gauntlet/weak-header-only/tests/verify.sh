read -r header < /app/large.csv && [[ $header == id,amount ]]
