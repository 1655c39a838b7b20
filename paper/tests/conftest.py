"""What the tests of the evaluation share."""

from pathlib import Path

import pytest

from command_line import asyncfeded_here
from every_test import folders_of_this_test, pytest_runtestloop
from small_evaluations import SMALL_EVALUATION

__all__ = ["folders_of_this_test", "pytest_runtestloop"]


@pytest.fixture(scope="session")
def small_evaluation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Figures 1 to 5 and Table 1 of the paper, from short runs."""
    folder = tmp_path_factory.mktemp("evaluation") / "paper"
    done = asyncfeded_here(*SMALL_EVALUATION, "--out", folder)
    assert done.returncode == 0, done.stderr
    return folder
