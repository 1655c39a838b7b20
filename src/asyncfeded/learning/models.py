"""The models of the paper's tasks. Their layers' widths are for the user to choose."""

import torch
from torch import Tensor, nn

IMAGE_SIDE = 28
LSTM_LAYERS = 2


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


class Ink(nn.Module):
    """Images of bytes, white paper at 255, as one channel of floats: paper 0, ink 1."""

    def forward(self, pixels: Tensor) -> Tensor:
        """(n, side, side) bytes to (n, 1, side, side) floats."""
        return torch.rsub(pixels.unsqueeze(1), 255).float().div_(255)


def cnn(channels: tuple[int, int], classes: int) -> nn.Sequential:
    """Two convolutions, one pooling and one fully connected layer, as for FEMNIST.

    The first convolution moves two pixels at a time, which leaves a quarter of the work.
    """
    first, second = channels
    side = ((IMAGE_SIDE - 5) // 2 + 1 - 2) // 2
    return nn.Sequential(
        Ink(),
        nn.Conv2d(1, first, kernel_size=5, stride=2),
        nn.ReLU(),
        nn.Conv2d(first, second, kernel_size=3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(second * side * side, classes),
    )


class NextCharacter(nn.Module):
    """Embedding, two LSTM layers and one fully connected layer, as for Shakespeare."""

    def __init__(self, embedding: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(classes, embedding)
        self.lstm = nn.LSTM(embedding, hidden, num_layers=LSTM_LAYERS)
        self.output = nn.Linear(hidden, classes)

    def forward(self, windows: Tensor) -> Tensor:
        """(n, characters) classes to (n, classes) scores of the character that follows."""
        states, _ = self.lstm(self.embedding(windows.t().int()))
        scores: Tensor = self.output(states[-1])
        return scores
