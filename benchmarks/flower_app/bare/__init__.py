"""A Flower app that only passes arrays."""
