"""The work of a client round: models, data and a tutorial's training loop.

Everything here needs torch alone, because the peers' environments do not have this project. The
models have the layers and default widths of asyncfeded's; the engine's contestant checks that.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache

import torch
from torch import Tensor, nn

CLIENTS = 20
EXAMPLES = 320
BATCH = 32
STEPS = EXAMPLES // BATCH
LEARNING_RATE = 0.01
MOMENTUM = 0.5

FEATURES = 60
IMAGE_SIDE = 28
CHARACTERS = 80
CLASSES: Mapping[str, int] = {"mlp": 10, "cnn": 62, "lstm": 81}


class Ink(nn.Module):
    """Images of bytes, white paper at 255, as one channel of floats: paper 0, ink 1."""

    def forward(self, pixels: Tensor) -> Tensor:
        return torch.rsub(pixels.unsqueeze(1), 255).float().div_(255)


class NextCharacter(nn.Module):
    """Embedding, two LSTM layers and one fully connected layer."""

    def __init__(self, embedding: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(classes, embedding)
        self.lstm = nn.LSTM(embedding, hidden, num_layers=2)
        self.output = nn.Linear(hidden, classes)

    def forward(self, windows: Tensor) -> Tensor:
        states, _ = self.lstm(self.embedding(windows.t().int()))
        scores: Tensor = self.output(states[-1])
        return scores


def _mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(FEATURES, 200),
        nn.ReLU(),
        nn.Linear(200, 100),
        nn.ReLU(),
        nn.Linear(100, CLASSES["mlp"]),
    )


def _cnn() -> nn.Module:
    return nn.Sequential(
        Ink(),
        nn.Conv2d(1, 16, kernel_size=5, stride=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, kernel_size=3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 5 * 5, CLASSES["cnn"]),
    )


def _lstm() -> nn.Module:
    return NextCharacter(8, 32, CLASSES["lstm"])


MODELS: Mapping[str, Callable[[], nn.Module]] = {"mlp": _mlp, "cnn": _cnn, "lstm": _lstm}
"""The workloads by name."""


def make_module(workload: str) -> nn.Module:
    """The workload's model, with the same initial weights in every process."""
    torch.manual_seed(0)
    return MODELS[workload]()


@cache
def client_data(workload: str, client: int) -> tuple[Tensor, Tensor]:
    """A client's examples: the same in every process, and made once in each."""
    draw = torch.Generator().manual_seed(zlib.crc32(f"{workload} {client}".encode()))
    classes = CLASSES[workload]
    targets = torch.randint(0, classes, (EXAMPLES,), generator=draw)
    if workload == "mlp":
        return torch.randn(EXAMPLES, FEATURES, generator=draw), targets
    shape, values = (
        ((EXAMPLES, IMAGE_SIDE, IMAGE_SIDE), 256)
        if workload == "cnn"
        else ((EXAMPLES, CHARACTERS), classes)
    )
    return torch.randint(0, values, shape, dtype=torch.uint8, generator=draw), targets


def shuffled_batches(x: Tensor, y: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """One pass in mini-batches, in an order of its own."""
    for places in torch.split(torch.randperm(len(y)), BATCH):
        yield x[places], y[places]


def train_round(module: nn.Module, x: Tensor, y: Tensor) -> None:
    """A client round as a tutorial has it: K mini-batches of momentum SGD."""
    optimizer = torch.optim.SGD(module.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)
    module.train()
    for inputs, targets in shuffled_batches(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(module(inputs), targets)
        loss.backward()
        optimizer.step()
