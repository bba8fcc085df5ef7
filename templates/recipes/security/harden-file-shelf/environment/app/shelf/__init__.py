"""A shelf of files: get, put, unpack and signed links."""
