"""The task: ten kinds of small pictures, drawn here so that nothing is downloaded."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CLASSES = 10
SIDE = 12
EXAMPLES = 600
NOISE = 1.6


class Net(nn.Module):
    """A small convolutional network."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.fc1 = nn.Linear(8 * (SIDE // 2) ** 2, 64)
        self.fc2 = nn.Linear(64, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.max_pool2d(self.conv(x).relu(), 2).flatten(1)
        return self.fc2(self.fc1(x).relu())


def pictures(classes: torch.Tensor, draw: torch.Generator) -> TensorDataset:
    """One noisy picture of each class named; a class is the same for everybody."""
    kinds = torch.randn(CLASSES, 1, SIDE, SIDE, generator=torch.Generator().manual_seed(0))
    noise = torch.randn(len(classes), 1, SIDE, SIDE, generator=draw)
    return TensorDataset(kinds[classes] + NOISE * noise, classes)


def load_data(partition_id: int, num_partitions: int, batch_size: int) -> DataLoader:
    """A site's own pictures: half of them are of the few classes that it sees most."""
    draw = torch.Generator().manual_seed(1 + partition_id)
    own = torch.arange(partition_id, CLASSES, num_partitions)
    most = own[torch.randint(len(own), (EXAMPLES // 2,), generator=draw)]
    others = torch.randint(CLASSES, (EXAMPLES // 2,), generator=draw)
    examples = pictures(torch.cat([most, others]), draw)
    return DataLoader(examples, batch_size=batch_size, shuffle=True)


def load_test_data() -> DataLoader:
    """The server's pictures, as many of each class."""
    draw = torch.Generator().manual_seed(10_000)
    return DataLoader(pictures(torch.arange(2000) % CLASSES, draw), batch_size=500)


def train(net: nn.Module, loader: DataLoader, epochs: int, learning_rate: float) -> float:
    """Train for some epochs; return the mean loss of the last."""
    optimizer = torch.optim.SGD(net.parameters(), lr=learning_rate)
    net.train()
    loss_sum = 0.0
    for _ in range(epochs):
        loss_sum = 0.0
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(inputs), targets)
            loss.backward()
            optimizer.step()
            loss_sum += loss.item()
    return loss_sum / len(loader)


def test(net: nn.Module, loader: DataLoader) -> tuple[float, float]:
    """The mean loss and the accuracy."""
    net.eval()
    loss, right, seen = 0.0, 0, 0
    with torch.no_grad():
        for inputs, targets in loader:
            outputs = net(inputs)
            loss += nn.functional.cross_entropy(outputs, targets, reduction="sum").item()
            right += int((outputs.argmax(1) == targets).sum())
            seen += len(targets)
    return loss / seen, right / seen
