"""What the paper shows: its tasks, its values of P, its figures and tables."""

from typing import Literal

Scale = Literal["quick", "full"]

TASKS = ("synthetic-1-1", "femnist", "shakespeare")
SUSPENSIONS = tuple(tenth / 10 for tenth in range(10))
"""P of Figures 5 to 14, one figure each."""
FIGURES = tuple(range(1, 15))
TABLES = (1, 2, 3, 4)
USUAL_SUSPENSION = 0.1
"""P of Figures 2 and 4, and of the sweeps."""
CONSTANT_EPOCHS = (5, 10, 15, 20)
