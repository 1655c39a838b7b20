"""The contestants of benchmarks/peers.py, each a process of its own, and what they share."""
