@test "the sum is right" {
  [ "$(cat /app/sum.txt)" = 5050 ]
}
