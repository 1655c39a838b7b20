"""What takes seconds before a run begins is said beforehand."""

import pytest

from asyncfeded.core import kernels
from asyncfeded.experiment.run import resolve
from asyncfeded.experiment.settings import run_settings
from asyncfeded.experiment.waits import waits_of


def waits(**settings: object) -> list[str]:
    return waits_of(resolve(run_settings(settings)))


@pytest.mark.parametrize("kernel", ["torch", "compiled"])
def test_compiling_is_said_where_the_code_is_not_on_disk(
    kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def on_disk(function: object) -> bool:
        asked.append(getattr(function, "__name__", ""))
        return asked[-1] != "train_passes"

    monkeypatch.setattr(kernels, "is_on_disk", on_disk)
    said = waits(kernel=kernel)
    assert asked == ["block_squares_and_apart", "train_passes"][: 1 if kernel == "torch" else 2]
    assert [line[:9] for line in said] == ([] if kernel == "torch" else ["compiling"])


def test_the_start_of_a_ray_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "is_on_disk", lambda _: True)
    assert waits() == []
    for on_ray in ({"on": "ray"}, {"workers_on": "ray"}):
        assert waits(**on_ray) == [
            "starting processes on a Ray of our own, which takes some seconds …"
        ]
    (line,) = waits(on="ray", ray_address="10.0.0.1:6379")
    assert "on the Ray at 10.0.0.1:6379" in line
