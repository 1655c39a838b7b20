"""The names of the metrics that the package measures itself, and what is good about a metric."""

from typing import Literal

ACCURACY = "accuracy"
LOSS = "loss"

Goal = Literal["max", "min"]
"""Whether a metric is to be high or low."""
