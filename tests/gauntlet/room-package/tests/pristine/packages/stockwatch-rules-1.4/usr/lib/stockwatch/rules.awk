# Rules of the old kind: one limit for all shelves.
function is_low(item, shelf, quantity) { return quantity < setting["limit"] }
