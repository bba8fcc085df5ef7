# A shelf can have a limit of its own: `limit.SHELF = N`.
function is_low(item, shelf, quantity,    own) {
  own = "limit." shelf
  return quantity < (own in setting ? setting[own] : setting["limit"])
}
