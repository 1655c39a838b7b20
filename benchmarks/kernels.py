"""Which of torch's paths on the CPU trains the CNN and the LSTM fastest, as ratios in one run.

    python benchmarks/kernels.py [--repeats 15]

One mini-batch of 32 forth and back on one thread, with the models' default widths. Variants are
timed in turn, as often as `--repeats` says; each ratio is taken within a repeat, and the median is
reported with its range. Above 1 is faster than what the package does.
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Callable, Mapping

import torch
from torch import nn

from asyncfeded.data import femnist, roles
from asyncfeded.learning.models import NextCharacter
from asyncfeded.tasks.registry import find_task

BATCH = 32
TIMES = 5
Step = Callable[[], object]


def step(module: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Step:
    parameters = list(module.parameters())
    loss = nn.functional.cross_entropy
    return lambda: torch.autograd.grad(loss(module(x), y), parameters)


def without_onednn(run: Step) -> Step:
    def slower() -> None:
        with torch.backends.mkldnn.flags(enabled=False):
            run()

    return slower


class ConvertedConvolution(nn.Conv2d):
    """Weights channels first, as in a flat vector, turned to channels last at every step."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = self.weight.contiguous(memory_format=torch.channels_last)
        output: torch.Tensor = self._conv_forward(x, weight, self.bias)
        return output


def converted(module: nn.Module) -> nn.Module:
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            layer.__class__ = ConvertedConvolution
    return module


class UnrolledLSTM(nn.Module):
    """The same model with a cell per character instead of torch's fused layers."""

    def __init__(self, model: NextCharacter, hidden: int) -> None:
        super().__init__()
        self.embedding, self.output = model.embedding, model.output
        width = model.embedding.embedding_dim
        self.cells = nn.ModuleList([nn.LSTMCell(width, hidden), nn.LSTMCell(hidden, hidden)])

    def forward(self, windows: torch.Tensor) -> torch.Tensor:
        states: list[tuple[torch.Tensor, torch.Tensor] | None] = [None, None]
        for inputs in self.embedding(windows.t().int()):
            for layer, cell in enumerate(self.cells):
                states[layer] = cell(inputs, states[layer])
                inputs = states[layer][0]  # type: ignore[index]
        scores: torch.Tensor = self.output(inputs)
        return scores


def report(title: str, chosen: str, variants: Mapping[str, Step], repeats: int) -> None:
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for run in variants.values():
        run()
    for _ in range(repeats):
        for name, run in variants.items():
            started = time.perf_counter()
            for _ in range(TIMES):
                run()
            seconds[name].append((time.perf_counter() - started) / TIMES)
    print(f"{title}: {1e3 * statistics.median(seconds[chosen]):.2f} ms with {chosen}")
    for name in variants:
        if name != chosen:
            ratios = [
                ours / theirs for ours, theirs in zip(seconds[chosen], seconds[name], strict=True)
            ]
            low, high = min(ratios), max(ratios)
            print(f"  {name:<40} {statistics.median(ratios):.2f} ×  ({low:.2f} to {high:.2f})")


def cnn_variants() -> dict[str, Step]:
    task = find_task("femnist-standin")
    torch.manual_seed(0)
    x = torch.randint(0, 256, (BATCH, femnist.SIDE, femnist.SIDE), dtype=torch.uint8)
    y = torch.randint(0, femnist.CLASSES, (BATCH,))
    plain = task.make_module(task.widths)
    last = task.make_module(task.widths).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return {
        "oneDNN, channels first": step(plain, x, y),
        "channels last": step(last, x, y),
        "channels last, from flat weights": step(converted(task.make_module(task.widths)), x, y),
        "without oneDNN": without_onednn(step(plain, x, y)),
    }


def lstm_variants() -> dict[str, Step]:
    task = find_task("shakespeare-standin")
    torch.manual_seed(0)
    x = torch.randint(0, roles.CLASSES, (BATCH, roles.WINDOW), dtype=torch.uint8)
    y = torch.randint(0, roles.CLASSES, (BATCH,))
    fused = task.make_module(task.widths)
    assert isinstance(fused, NextCharacter)
    return {
        "fused layers of oneDNN": step(fused, x, y),
        "without oneDNN": without_onednn(step(fused, x, y)),
        "a cell per character": step(UnrolledLSTM(fused, task.widths[1]), x, y),
    }


def optimizer_variants(name: str) -> dict[str, Step]:
    """One step of momentum SGD on the task's parameters, without the gradients."""
    task = find_task(name)
    module = task.make_module(task.widths)
    parameters = list(module.parameters())
    gradients = [torch.randn_like(parameter) for parameter in parameters]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient
    velocities = [torch.zeros_like(parameter) for parameter in parameters]
    weights = [parameter.detach() for parameter in parameters]
    plain = torch.optim.SGD(parameters, lr=1e-6, momentum=0.5)
    fused = torch.optim.SGD(parameters, lr=1e-6, momentum=0.5, fused=True)

    def kernel() -> None:
        torch._fused_sgd_(
            weights,
            gradients,
            velocities,
            weight_decay=0.0,
            momentum=0.5,
            lr=1e-6,
            dampening=0.0,
            nesterov=False,
            maximize=False,
            is_first_step=False,
        )

    return {
        "the fused kernel alone": kernel,
        "torch.optim.SGD(fused=True)": fused.step,
        "torch.optim.SGD": plain.step,
    }


def evaluation_variants(name: str, x: torch.Tensor) -> dict[str, Step]:
    """1,024 test examples in batches of several sizes."""
    task = find_task(name)
    module = task.make_module(task.widths).eval()

    def in_batches(size: int) -> Step:
        def run() -> None:
            with torch.no_grad():
                for batch in torch.split(x, size):
                    module(batch)

        return run

    return {f"batches of {size}": in_batches(size) for size in (512, 32, 128, 1024)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", "TF32 acceleration on top of oneDNN")
    report("CNN, one mini-batch", "oneDNN, channels first", cnn_variants(), repeats)
    report("LSTM, one mini-batch", "fused layers of oneDNN", lstm_variants(), repeats)
    images = torch.zeros(1024, femnist.SIDE, femnist.SIDE, dtype=torch.uint8)
    texts = torch.zeros(1024, roles.WINDOW, dtype=torch.uint8)
    for name, x in (("femnist-standin", images), ("shakespeare-standin", texts)):
        optimizers = optimizer_variants(name)
        report(f"SGD step, {name}", "the fused kernel alone", optimizers, repeats)
        report(f"evaluation, {name}", "batches of 512", evaluation_variants(name, x), repeats)


if __name__ == "__main__":
    main()
