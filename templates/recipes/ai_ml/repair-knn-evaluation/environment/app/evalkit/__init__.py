"""Cross-validated evaluation of a k-nearest-neighbour classifier."""
