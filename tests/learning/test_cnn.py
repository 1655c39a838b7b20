"""The CNN of FEMNIST: what it computes, however it is arranged for speed."""

import torch
from torch import Tensor, nn

from asyncfeded.learning.models import Ink, cnn

CHANNELS = (6, 7)
CLASSES = 62


def as_described() -> nn.Sequential:
    """Whole images, and ReLU before pooling."""
    return nn.Sequential(
        Ink(),
        nn.Conv2d(1, 6, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 7, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(7 * 5 * 5, CLASSES),
    )


def images(count: int) -> Tensor:
    draw = torch.Generator().manual_seed(1)
    return torch.randint(0, 256, (count, 28, 28), dtype=torch.uint8, generator=draw)


def scores_and_gradient(module: nn.Module) -> tuple[Tensor, Tensor]:
    scores = module(images(5))
    gradients = torch.autograd.grad(scores.square().sum(), list(module.parameters()))
    return scores, torch.cat([gradient.flatten() for gradient in gradients])


def test_the_cnn_has_two_convolutions_each_with_a_pooling_and_one_fully_connected_layer() -> None:
    module = cnn(CHANNELS, CLASSES)
    kinds = [type(layer).__name__ for layer in module.modules()]
    assert [kinds.count(kind) for kind in ("Conv2d", "MaxPool2d", "Linear")] == [2, 2, 1]
    assert module(images(3)).shape == (3, 62)
    # 3 · 3 · 1 · 6 + 6, then 3 · 3 · 6 · 7 + 7, then 5 · 5 · 7 · 62 + 62.
    assert sum(parameter.numel() for parameter in module.parameters()) == 60 + 385 + 10912


def test_cutting_images_and_pooling_first_change_neither_scores_nor_gradients() -> None:
    torch.manual_seed(0)
    ours, described = cnn(CHANNELS, CLASSES), as_described()
    torch.nn.utils.vector_to_parameters(
        torch.nn.utils.parameters_to_vector(ours.parameters()), described.parameters()
    )
    for left, right in zip(scores_and_gradient(ours), scores_and_gradient(described), strict=True):
        torch.testing.assert_close(left, right)


def test_the_last_two_rows_and_columns_are_not_seen() -> None:
    module = as_described()
    whole, cut = images(2), images(2)
    cut[:, 26:] = 0
    cut[:, :, 26:] = 0
    assert torch.equal(module(whole), module(cut))
    cut[:, :, 25] = 255 - cut[:, :, 25]
    assert not torch.equal(module(whole), module(cut))
