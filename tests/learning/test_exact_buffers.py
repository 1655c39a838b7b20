"""Integers and booleans in the flat vector, and modules that cannot be laid out in one."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import nn

from asyncfeded import TrainTask
from asyncfeded.core.errors import SettingError
from asyncfeded.learning.datasets import TensorExamples
from asyncfeded.learning.flat import FlatModule
from asyncfeded.learning.local_training import LocalTraining
from asyncfeded.learning.trainer import TorchTrainer


def with_buffer(values: torch.Tensor) -> nn.Module:
    module = nn.Linear(1, 1)
    module.register_buffer("kept", values)
    return module


INTEGERS = [
    (torch.tensor([True, False]), 2),
    (torch.tensor([-128, 127], dtype=torch.int8), 2),
    (torch.tensor([0, 255], dtype=torch.uint8), 2),
    (torch.tensor([-(2**15), 2**15 - 1], dtype=torch.int16), 2),
    (torch.tensor([0, 2**16 - 1], dtype=torch.uint16), 2),
    (torch.tensor([-(2**31), 2**24 + 1], dtype=torch.int32), 4),
    (torch.tensor([2**24 + 1, 2**40 + 1, -1, -(2**63), 2**63 - 1]), 20),
    (torch.tensor(2**53 + 1), 4),
    (torch.zeros(0, dtype=torch.int64), 0),
]


@pytest.mark.parametrize(("values", "elements"), INTEGERS, ids=lambda value: str(value)[:20])
def test_integers_and_booleans_keep_their_values_through_the_vector(
    values: torch.Tensor, elements: int
) -> None:
    sent = FlatModule(with_buffer(values.clone()))
    received = FlatModule(with_buffer(torch.zeros_like(values)))
    assert (sent.schema.trained, sent.schema.exact, sent.schema.size) == (2, elements, 2 + elements)
    assert sent.schema.lengths == (1, 1, elements)
    # As an update travels: the difference of two vectors, added to the first of them.
    base = received.collect().copy()
    received.load(base + (sent.collect() - base))
    (now,) = (tensor for tensor, _ in received._exact)
    assert now.dtype == values.dtype
    assert now.tolist() == values.tolist()


def test_limbs_come_last_after_frozen_parameters_and_float_buffers() -> None:
    module = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 1))
    module[1].requires_grad_(False)
    schema = FlatModule(module).schema
    assert schema.names == (
        *("0.weight", "0.bias", "1.weight", "1.bias"),
        *("0.running_mean", "0.running_var", "0.num_batches_tracked"),
    )
    assert schema.lengths == (2, 2, 2, 1, 2, 2, 4)
    assert (schema.trained, schema.exact, schema.size) == (4, 4, 15)


def test_a_flag_that_a_module_sets_while_it_trains_travels_with_the_update() -> None:
    class Flagged(nn.Module):
        seen: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(1, 2)
            self.register_buffer("seen", torch.tensor(False))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.seen = torch.tensor(True)
            out: torch.Tensor = self.linear(x)
            return out

    examples = TensorExamples(torch.ones(4, 1), torch.zeros(4, dtype=torch.int64))
    train = TorchTrainer(Flagged(), {"a": examples})
    assert train.initial[-1] == 0
    assert train(TrainTask("a", 1, train.initial, 1)).delta[-1] == 1


@pytest.mark.parametrize("dtype", [torch.complex64, torch.float64, torch.float16])
def test_numbers_of_other_kinds_are_refused_by_name(dtype: torch.dtype) -> None:
    with pytest.raises(SettingError, match=f"^buffer 'kept' must be float32; given {dtype}: "):
        FlatModule(with_buffer(torch.zeros(2, dtype=dtype)))


def test_a_complex_parameter_is_refused_by_name() -> None:
    module = nn.Linear(1, 1)
    module.spectrum = nn.Parameter(torch.zeros(2, dtype=torch.complex64))
    with pytest.raises(SettingError, match=r"^parameter 'spectrum' must be float32; given"):
        FlatModule(module)


def test_a_lazy_parameter_is_refused_by_name() -> None:
    with pytest.raises(SettingError, match=r"^parameter '.*' has no shape yet"):
        FlatModule(nn.LazyLinear(2))


def two_layers() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))


def tied_by_data() -> nn.Module:
    module = two_layers()
    module[1].get_parameter("weight").data = module[0].get_parameter("weight").data
    return module


def tied_by_a_view() -> nn.Module:
    module = two_layers()
    module[1].weight = nn.Parameter(module.get_parameter("0.weight").detach().t())
    return module


def partly_overlapping() -> nn.Module:
    module, memory = two_layers(), torch.zeros(6)
    module[0].weight.data = memory[:4].view(2, 2)
    module[1].weight.data = memory[2:].view(2, 2)
    return module


@pytest.mark.parametrize("make", [tied_by_data, tied_by_a_view, partly_overlapping])
def test_parameters_that_share_memory_are_refused_by_name(
    make: Callable[[], nn.Module],
) -> None:
    module = make()
    places = [tensor.data_ptr() for tensor in module.state_dict().values()]
    with pytest.raises(
        SettingError, match=r"parameter '0.weight' and parameter '1.weight' must not share memory"
    ):
        FlatModule(module)
    assert [tensor.data_ptr() for tensor in module.state_dict().values()] == places


def test_a_buffer_that_is_a_view_of_a_parameter_is_refused_by_name() -> None:
    module = nn.Linear(2, 2)
    module.register_buffer("first_row", module.weight.detach()[0], persistent=False)
    with pytest.raises(SettingError, match="'weight' and buffer 'first_row' must not share memory"):
        FlatModule(module)


def test_an_expanded_parameter_is_refused_by_name() -> None:
    module = nn.Linear(2, 2)
    module.bias = nn.Parameter(torch.zeros(1).expand(2))
    with pytest.raises(SettingError, match="'bias' must have memory of its own for every element"):
        FlatModule(module)


def test_parameters_that_are_the_same_object_or_lie_between_each_other_are_taken() -> None:
    module = two_layers()
    module[1].weight = module[0].weight
    assert FlatModule(module).schema.trained == 8
    module, columns = two_layers(), torch.zeros(2, 2)
    module[0].bias.data, module[1].bias.data = columns[:, 0], columns[:, 1]
    assert FlatModule(module).schema.trained == 12


@pytest.fixture
def _double_by_default() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.usefixtures("_double_by_default")
@pytest.mark.parametrize("mu", [0.0, 0.5])
def test_a_float32_module_trains_where_float64_is_torch_s_default(mu: float) -> None:
    module = nn.Linear(1, 2).float()
    examples = TensorExamples(torch.ones(4, 1), torch.zeros(4, dtype=torch.int64))
    train = TorchTrainer(module, {"a": examples})
    assert module.weight.dtype == torch.float32
    delta = train(TrainTask("a", 1, train.initial, 1, proximal_mu=mu)).delta
    assert delta.dtype == np.float32
    assert np.abs(delta).min() > 0


def test_a_module_that_is_refused_is_left_as_it_was() -> None:
    module = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).double())
    first = module.get_parameter("0.weight").data_ptr()
    with pytest.raises(SettingError, match="must be float32"):
        FlatModule(module)
    assert module.get_parameter("0.weight").data_ptr() == first

    module = nn.Sequential(nn.Linear(2, 2))
    first = module.get_parameter("0.weight").data_ptr()
    examples = TensorExamples(torch.ones(4, 2), torch.zeros(4, dtype=torch.int64))
    training = LocalTraining(optimizers={"b": torch.optim.Adam})
    with pytest.raises(SettingError, match="optimizers names client 'b'"):
        TorchTrainer(module, {"a": examples}, training)
    assert module.get_parameter("0.weight").data_ptr() == first
