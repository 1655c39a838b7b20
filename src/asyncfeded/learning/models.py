"""The models of the paper's tasks; the user chooses the widths of their layers."""

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
        """(n, side, side) bytes to (n, 1, side, side) floats.

        The one channel comes last in memory, and so do those of the layers that follow: pooling
        is then ten times as fast.
        """
        ink = torch.rsub(pixels.unsqueeze(-1), 255).float().div_(255)
        return ink.permute(0, 3, 1, 2)


class Cut(nn.Module):
    """The upper left part of images, `side` pixels wide and high."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side

    def forward(self, pixels: Tensor) -> Tensor:
        """(n, any, any) to (n, side, side)."""
        return pixels[:, : self.side, : self.side]


def cnn(channels: tuple[int, int], classes: int) -> nn.Sequential:
    """Two 3 × 3 convolutions, each with a 2 × 2 pooling, and one fully connected layer.

    A side of 28 pixels shrinks to 26, 13, 11 and 5, so the second pooling leaves out the 11th
    row and column. Nothing else depends on the last two rows and columns of the image: they are
    cut off at once. Pooling before ReLU is ReLU before pooling with a quarter of the work.
    """
    first, second = channels
    pooled = ((IMAGE_SIDE - 2) // 2 - 2) // 2
    seen = 2 * (2 * pooled + 2) + 2
    return nn.Sequential(
        Cut(seen),
        Ink(),
        nn.Conv2d(1, first, kernel_size=3),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(first, second, kernel_size=3),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(second * pooled * pooled, classes),
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
