import subprocess
import sys
from importlib import import_module

import pytest

import asyncfeded

PACKAGES = (
    "asyncfeded",
    *(
        f"asyncfeded.{name}"
        for name in ("callbacks", "cli", "data", "experiment", "flower", "guards", "learning")
    ),
    *(f"asyncfeded.{name}" for name in ("report", "rules", "runtime", "simulation", "store")),
)
"""Packages whose names other packages may use."""


def printed_by(code: str) -> str:
    """What a process of its own prints."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_server_and_the_rules_do_without_torch() -> None:
    code = "from asyncfeded import Server, rules; import sys; print('torch' in sys.modules)"
    assert printed_by(code) == "False"


def test_to_import_a_package_does_not_load_what_trains_draws_or_reads_settings() -> None:
    light = ", ".join(name for name in PACKAGES if name != "asyncfeded.callbacks")
    code = f"import {light}, sys; print(sys.modules.keys() & {{'torch', 'matplotlib', 'pydantic'}})"
    assert printed_by(code) == "set()"


@pytest.mark.slow
def test_to_check_a_run_does_not_load_torchs_compiler() -> None:
    code = (
        "from asyncfeded.experiment import resolve, run_settings; import sys; "
        "resolve(run_settings({'task': 'shakespeare'})); print('torch._dynamo' in sys.modules)"
    )
    assert printed_by(code) == "False"


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_name_is_there(name: str) -> None:
    package = import_module(name)
    for public in package.__all__:
        assert getattr(package, public) is not None
    assert len(set(package.__all__)) == len(package.__all__)


def test_a_name_that_is_not_there_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = asyncfeded.nonsense


@pytest.mark.slow
def test_what_trackers_write_with_is_loaded_when_a_run_is_tracked() -> None:
    code = (
        "import asyncfeded, asyncfeded.cli.main, sys; asyncfeded.MLflow('a'); "
        "asyncfeded.TensorBoard('b'); print({'mlflow', 'tensorboard'} & {*sys.modules})"
    )
    assert printed_by(code) == "set()"


@pytest.mark.parametrize(
    "command",
    [
        "run --availability none.csv",
        "run --hangs-from none.csv",
        "run --task none.py:make",
        "run --task femnist --data-dir none",
        "run --on ray --ray-address here",
        "run --serve here",
        "compare --target 2",
        "sweep --out none --search lam=2:1",
        "data show nothing",
        "data show none.npz",
        "resume none",
        "paper --figure 99",
    ],
)
def test_what_is_wrong_with_a_command_is_found_before_torch_is_loaded(command: str) -> None:
    code = (
        f"import sys; sys.argv[1:] = {command.split()!r}\n"
        "from asyncfeded.cli.main import main\n"
        "try: main()\n"
        "except SystemExit as end: print(end.code, {'torch', 'ray'} & {*sys.modules})"
    )
    assert printed_by(code) == "2 set()"


WITHOUT_THE_EXTRA_TORCH = (
    "import sys; "
    "heavy = ('torch', 'matplotlib', 'PIL', 'scipy', 'threadpoolctl'); "
    "sys.modules.update(dict.fromkeys(heavy)); "
)


def test_a_plain_install_serves_updates() -> None:
    code = (
        "import numpy as np; from asyncfeded import ClientUpdate, Server, rules; "
        "server = Server(np.zeros(2, np.float32), rules.asyncfeded()); task = server.join('a'); "
        "update = ClientUpdate('a', task.version, np.ones(2, np.float32), 1, task.epochs); "
        "print(server.receive(update).accepted)"
    )
    assert printed_by(WITHOUT_THE_EXTRA_TORCH + code) == "True"


@pytest.mark.parametrize("command", ["data list", "check-rule fedbuff"])
def test_a_plain_install_has_the_commands_that_train_nothing(command: str) -> None:
    code = f"sys.argv[1:] = {command.split()!r}; from asyncfeded.cli.main import main; main()"
    run = [sys.executable, "-c", WITHOUT_THE_EXTRA_TORCH + code]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_trains_says_what_to_install() -> None:
    code = "sys.argv[1:] = ['run', '--seconds', '1']; from asyncfeded.cli.main import main; main()"
    command = [sys.executable, "-c", WITHOUT_THE_EXTRA_TORCH + code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "is not installed, which this needs: pip install 'asyncfeded[torch]'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_federation_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['flwr'] = None; import asyncfeded\n"
        "try: asyncfeded.flower.server_app\n"
        "except asyncfeded.AsyncFedEDError as error: print(error)"
    )
    assert printed_by(code) == (
        "flwr is not installed, which a federation needs: pip install 'asyncfeded[flower]'"
    )


def test_to_name_flowers_package_does_not_load_flower() -> None:
    code = "import asyncfeded, sys; asyncfeded.flower; print({'flwr', 'torch'} & {*sys.modules})"
    assert printed_by(code) == "set()"
