"""The option that says what torch computes on."""

from pathlib import Path

import pytest
import torch

from asyncfeded.core.errors import SettingError
from asyncfeded.experiment.run import resolve
from asyncfeded.experiment.settings import run_settings
from command_line import asyncfeded_here as asyncfeded


@pytest.fixture
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torch.version, "hip", None)


@pytest.mark.usefixtures("_no_gpu")
def test_a_missing_device_is_one_line_and_leaves_no_folder(tmp_path: Path) -> None:
    done = asyncfeded("run", "--device", "cuda", "--seconds", "1", "--out", tmp_path / "run")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: device must be one that torch finds; given 'cuda': this torch is built without "
        "CUDA\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"device": "gpu"}, "device must be 'cpu', 'cuda', 'cuda:N' or 'mps'; given 'gpu'"),
        (
            {"device": "cuda", "kernel": "compiled"},
            "device must be 'cpu' for kernel 'compiled'; given 'cuda'",
        ),
        (
            {"device": "cuda", "workers": 2},
            "device must be 'cpu' with several workers and on ray; given 'cuda'",
        ),
        (
            {"device": "mps", "on": "ray"},
            "device must be 'cpu' with several workers and on ray; given 'mps'",
        ),
    ],
)
def test_a_device_that_does_not_fit_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(SettingError) as raised:
        resolve(run_settings({"task": "synthetic-1-1", **given}))
    assert str(raised.value) == message


def test_torch_trains_on_a_gpu_where_compiled_code_would_on_the_cpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("asyncfeded.experiment.run.find_device", torch.device)
    kernels = [
        resolve(run_settings({"task": "synthetic-1-1", "device": device})).training.kernel
        for device in ("cpu", "cuda")
    ]
    assert kernels == ["compiled", "torch"]
