"""The server and what it is made of: no clock, no I/O, no randomness, no torch."""
