"""The paper's tasks with the paper's settings."""

from pathlib import Path

import pytest
import torch

from asyncfeded.core.errors import FileError
from asyncfeded.tasks.paper_task import DataChoice, RunnableTask
from asyncfeded.tasks.registry import NAMED_TASKS, find_task
from leaf_folders import write_roles


def parameters(task: RunnableTask, widths: tuple[int, int]) -> int:
    return sum(parameter.numel() for parameter in task.make_module(widths).parameters())


def test_the_hyperparameters_are_those_of_the_papers_table() -> None:
    femnist, shakespeare = find_task("femnist"), find_task("shakespeare")
    assert femnist.rule_settings["asyncfeded"] == {
        "lam": 1.0,
        "eps": 1.0,
        "gamma_bar": 3.0,
        "kappa": 0.05,
    }
    assert femnist.rule_settings["fedprox"] == {"mu": 1.0}
    assert femnist.rule_settings["fedasync-hinge"] == {
        "alpha": 0.5,
        "a": 0.5,
        "b": 0.5,
        "lag_in": "seconds",
    }
    # λ = 5 and λ/ε = 0.5, so ε = 10.
    assert shakespeare.rule_settings["asyncfeded"] == {
        "lam": 5.0,
        "eps": 10.0,
        "gamma_bar": 3.0,
        "kappa": 1.0,
    }
    assert shakespeare.rule_settings["fedasync-constant"] == {"alpha": 0.1}
    assert (femnist.training.learning_rate, shakespeare.training.learning_rate) == (0.01, 1.0)
    assert {t.training.momentum for t in NAMED_TASKS.values()} == {0.5}
    assert {t.training.decay for t in NAMED_TASKS.values()} == {0.995}


def test_white_paper_is_zero_and_black_ink_is_one() -> None:
    ink = find_task("femnist").make_module((6, 7))[1]  # type: ignore[index]
    pixels = torch.tensor([[[255, 0, 51]]], dtype=torch.uint8)
    assert ink(pixels).tolist() == [[[[0.0, 1.0, pytest.approx(0.8)]]]]


def test_the_lstm_has_an_embedding_two_layers_and_one_fully_connected_layer() -> None:
    module = find_task("shakespeare").make_module((4, 6))
    assert module(torch.zeros(3, 80, dtype=torch.uint8)).shape == (3, 81)
    # Embedding 81 · 4; layers 4 · 6 · (4 + 6 + 2) and 4 · 6 · (6 + 6 + 2); output 6 · 81 + 81.
    assert parameters(find_task("shakespeare"), (4, 6)) == 324 + 288 + 336 + 567


def test_another_number_of_roles_has_a_plain_cap(tmp_path: Path) -> None:
    write_roles(tmp_path / "shakespeare", {f"r{i}": 3000 for i in range(3)})
    task = find_task("shakespeare")
    data = task.make_data(DataChoice(3, 0, min_examples=10, data_dir=tmp_path))
    assert [len(examples) for examples in data.train.values()] == [900] * 3
    fewer = task.make_data(DataChoice(3, 0, 10, max_examples=50, data_dir=tmp_path))
    assert [len(examples) for examples in fewer.train.values()] == [45] * 3


def test_the_environment_says_where_data_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_roles(tmp_path / "there" / "shakespeare", {"r": 3000})
    choice = DataChoice(1, 0, min_examples=10)
    with pytest.raises(FileError, match=r"needs data in .*data/shakespeare', which is not"):
        find_task("shakespeare").make_data(choice)
    monkeypatch.setenv("ASYNCFEDED_DATA_DIR", str(tmp_path / "there"))
    assert find_task("shakespeare").make_data(choice).sources == {"client-0": "r"}


def test_only_stand_ins_are_called_generated() -> None:
    assert [t.title for t in NAMED_TASKS.values()] == [
        "femnist",
        "shakespeare",
        "femnist-standin (generated, not the real data)",
        "shakespeare-standin (generated, not the real data)",
    ]
