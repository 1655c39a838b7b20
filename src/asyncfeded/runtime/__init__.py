"""One driver for every transport."""
