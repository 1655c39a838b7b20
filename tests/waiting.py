"""Waiting for what another thread or process does."""

import time
from collections.abc import Callable

LONGEST_SECONDS = 600
"""What takes longer hangs: the same limit as for every test, see pyproject.toml."""


def wait_until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds; if it never does, the limit of every test ends the wait."""
    while not condition():
        time.sleep(0.005)
