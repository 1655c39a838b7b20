import subprocess
import sys

import pytest

import asyncfeded


def test_the_server_and_the_rules_do_without_torch() -> None:
    code = "from asyncfeded import Server, rules; import sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_every_public_name_is_there() -> None:
    for name in asyncfeded.__all__:
        assert getattr(asyncfeded, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = asyncfeded.nonsense
