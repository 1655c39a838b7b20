"""A model as Flower's arrays and back: the same bits, and nothing unfit gets in."""

from io import BytesIO
from typing import Any

import numpy as np
import pytest
import torch
from flwr.app import Array, ArrayRecord
from torch import nn

from asyncfeded.core.errors import SettingError
from asyncfeded.core.messages import Refusal
from asyncfeded.flower.codec import Codec, UnfitRecordError
from asyncfeded.flower.model import layout_of
from asyncfeded.learning.flat import FlatModule


def module() -> nn.Module:
    """Parameters, one of them frozen, statistics and a counter of batches."""
    torch.manual_seed(3)
    made = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    made.get_parameter("0.bias").requires_grad_(False)
    made.get_buffer("1.running_mean").normal_()
    made.get_buffer("1.num_batches_tracked").fill_(123_456_789)
    return made


def flat(model: nn.Module) -> Any:
    return FlatModule(model).collect().copy()


def test_a_record_is_the_state_dict_of_the_model() -> None:
    codec, expected = Codec(layout_of(module())), module().state_dict()
    record = codec.record(flat(module()))
    assert list(record) == list(expected)
    fresh = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    fresh.load_state_dict(record.to_torch_state_dict())  # as ClientApps in Flower's manner do
    for name, tensor in fresh.state_dict().items():
        assert torch.equal(tensor, expected[name])
        assert tensor.dtype == expected[name].dtype


def test_the_record_of_a_state_dict_is_the_vector_of_the_model() -> None:
    vector = Codec(layout_of(module())).vector(ArrayRecord(module().state_dict()))
    assert vector.tobytes() == flat(module()).tobytes()


def test_tied_parameters_are_written_under_both_names_and_stay_one() -> None:
    tied = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    tied[1].weight = tied[0].weight
    codec = Codec(layout_of(tied))
    record = codec.record(flat(tied))
    assert list(record) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert codec.size == 9 + 3 + 3
    assert codec.vector(record).tolist() == flat(tied).tolist()


def test_the_model_is_left_as_it_is() -> None:
    model = module()
    before = dict(model.named_parameters())
    layout_of(model)
    assert all(parameter is before[name] for name, parameter in model.named_parameters())


def test_columns_first_is_read_as_it_is_meant() -> None:
    transposed = nn.Linear(3, 2)
    state = {name: tensor.detach() for name, tensor in transposed.state_dict().items()}
    record = ArrayRecord(
        {name: Array(np.asfortranarray(tensor.numpy())) for name, tensor in state.items()}
    )
    vector = Codec(layout_of(transposed)).vector(record)
    assert vector.tobytes() == flat(transposed).tobytes()


def test_one_record_serves_all_who_are_sent_a_version() -> None:
    codec, vector = Codec(layout_of(module())), flat(module())
    assert codec.record(vector) is codec.record(vector)
    assert codec.record(vector) is not codec.record(vector.copy())


class Extra(nn.Linear):
    def get_extra_state(self) -> dict[str, int]:
        return {"a": 1}

    def set_extra_state(self, state: Any) -> None:
        """Nothing is kept."""


def test_a_model_with_other_state_is_refused_by_name() -> None:
    with pytest.raises(SettingError, match="'_extra_state' is neither"):
        layout_of(Extra(2, 2))


def saved(array: Any, allow_pickle: bool = False) -> bytes:
    file = BytesIO()
    np.save(file, array, allow_pickle=allow_pickle)
    return file.getvalue()


def header(text: str) -> bytes:
    padded = text.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded.encode()


class Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("something was unpickled",)


GOOD = saved(np.arange(6, dtype=np.float32).reshape(2, 3))
DAMAGED: dict[str, tuple[bytes, Refusal]] = {
    "empty": (b"", Refusal.WRONG_TYPE),
    "no header": (GOOD[:20], Refusal.WRONG_TYPE),
    "other magic": (b"PICKLE" + GOOD, Refusal.WRONG_TYPE),
    "version 3": (b"\x93NUMPY\x03\x00" + GOOD[8:], Refusal.WRONG_TYPE),
    "cut off": (GOOD[:-1], Refusal.WRONG_LENGTH),
    "one more byte": (GOOD + b"\0", Refusal.WRONG_LENGTH),
    "pickled": (saved(np.array([Trap()] * 6, dtype=object), True), Refusal.WRONG_TYPE),
    "huge": (
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000, 1000000000)}"),
        Refusal.WRONG_LENGTH,
    ),
    "right shape, no content": (
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}"),
        Refusal.WRONG_LENGTH,
    ),
    "negative": (
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (-2, -3)}"),
        Refusal.WRONG_TYPE,
    ),
    "code": (header("{'descr': __import__('os').abort()}"), Refusal.WRONG_TYPE),
    "nested": (header("[" * 100), Refusal.WRONG_TYPE),
    "structured": (saved(np.zeros(6, dtype=[("a", "f4")])), Refusal.WRONG_TYPE),
    "big endian": (saved(np.zeros((2, 3), dtype=">f4")), Refusal.WRONG_TYPE),
    "float64": (saved(np.zeros((2, 3))), Refusal.WRONG_TYPE),
    "text": (saved(np.full((2, 3), "abcd")), Refusal.WRONG_TYPE),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_damaged_bytes_are_refused_in_one_line(what: str) -> None:
    data, refusal = DAMAGED[what]
    layer = nn.Linear(3, 2, bias=False)
    codec = Codec(layout_of(layer))
    lying = Array("float32", (2, 3), "numpy.ndarray", data)
    with pytest.raises(UnfitRecordError) as raised:
        codec.vector(ArrayRecord({"weight": lying}))
    assert raised.value.refusal == refusal
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 300


def test_every_cut_of_good_bytes_is_refused() -> None:
    codec = Codec(layout_of(nn.Linear(3, 2, bias=False)))
    for length in range(len(GOOD)):
        array = Array("float32", (2, 3), "numpy.ndarray", GOOD[:length])
        with pytest.raises(UnfitRecordError):
            codec.vector(ArrayRecord({"weight": array}))
    whole = Array("nonsense", (9,), "numpy.ndarray", GOOD)  # what Flower says of it does not count
    assert codec.vector(ArrayRecord({"weight": whole})).tolist() == [0, 1, 2, 3, 4, 5]
