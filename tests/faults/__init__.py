"""Deterministic fault simulation: everything that can fail fails, from a seed.

A *history* is a run of the real code against simulated parts, with invariants checked at every
step. The same seed gives the same history. From the folder tests:

    python -m faults --seconds 60                     as many histories as fit
    python -m faults --level server --seed 123        one of them again, step by step

There are two levels: the journal alone, and a durable server with all that it consists of.
"""
