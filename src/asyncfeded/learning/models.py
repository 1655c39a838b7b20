"""The models of the paper's tasks."""

from torch import nn


def mlp(inputs: int, hidden: tuple[int, int], classes: int) -> nn.Sequential:
    """Three fully connected layers, as for Synthetic-1-1."""
    first, second = hidden
    return nn.Sequential(
        nn.Linear(inputs, first),
        nn.ReLU(),
        nn.Linear(first, second),
        nn.ReLU(),
        nn.Linear(second, classes),
    )
