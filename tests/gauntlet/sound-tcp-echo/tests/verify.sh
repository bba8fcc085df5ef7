exec 3<> /dev/tcp/127.0.0.1/8086 || exit 1
for _ in 1 2 3; do
  line=$RANDOM-$RANDOM; reversed=
  for ((i = ${#line} - 1; i >= 0; i--)); do reversed+=${line:i:1}; done
  echo "$line" >&3 && read -r -t 3 answer <&3 && [[ $answer == "$reversed" ]] || exit 1
done
