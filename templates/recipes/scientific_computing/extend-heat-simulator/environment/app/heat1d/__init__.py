"""The heat equation on a rod of equal cells."""
