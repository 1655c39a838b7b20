import pytest
import torch
from torch import nn

from asyncfeded.core.errors import SettingError
from asyncfeded.learning.datasets import TensorExamples
from asyncfeded.learning.evaluation import Evaluator
from asyncfeded.learning.flat import FlatModule


def test_accuracy_and_loss_worked_by_hand() -> None:
    # Scores (x, 0) for x = 2, −2, 1: classes 0, 1, 0. Targets 0, 1, 1: two of three are right.
    module = nn.Linear(1, 2, bias=False)
    data = TensorExamples(torch.tensor([[2.0], [-2.0], [1.0]]), torch.tensor([0, 1, 1]))
    evaluate = Evaluator(module, {"all": data}, batch_size=2)
    measured = evaluate(torch.tensor([1.0, 0.0]).numpy())
    assert measured["accuracy"] == pytest.approx(2 / 3)
    # ln(1 + e^−2), twice, and ln(1 + e^1).
    assert measured["loss"] == pytest.approx((0.126928 * 2 + 1.313262) / 3, rel=1e-5)


def test_evaluation_uses_running_statistics_and_changes_none() -> None:
    module = nn.Sequential(nn.BatchNorm1d(2))
    data = TensorExamples(torch.randn(10, 2) + 5, torch.zeros(10, dtype=torch.long))
    evaluate = Evaluator(module, {"all": data})
    parameters = FlatModule(nn.Sequential(nn.BatchNorm1d(2))).collect()
    assert evaluate(parameters) == evaluate(parameters)
    assert module.state_dict()["0.running_mean"].tolist() == [0, 0]


class Scaled(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight


def test_every_answer_of_an_example_counts() -> None:
    # Two classes at two places: scores (examples, classes, places), targets (examples, places).
    scores = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    data = TensorExamples(scores, torch.tensor([[0, 0]]))
    measure = Evaluator(Scaled(1, 1, bias=False), {"all": data})
    assert measure(torch.ones(1).numpy())["accuracy"] == 0.5


def test_a_regression_has_a_loss_and_no_accuracy() -> None:
    # Predictions 1, 1, 1, 1 for 1, 2, 1.1, 0: squared errors 0, 1, 0.01, 1.
    data = TensorExamples(torch.ones(4, 1), torch.tensor([[1.0], [2.0], [1.1], [0.0]]))
    measured = Evaluator(nn.Linear(1, 1, bias=False), {"all": data}, nn.functional.mse_loss)
    assert measured(torch.ones(1).numpy()) == {"loss": pytest.approx(2.01 / 4)}


def test_a_metric_sees_the_outputs_of_all_batches_at_once() -> None:
    data = TensorExamples(torch.arange(5.0)[:, None], torch.zeros(5, 1))
    seen = []

    def largest(outputs: torch.Tensor, targets: torch.Tensor) -> float:
        seen.append((len(outputs), len(targets)))
        return float(outputs.max())

    module = nn.Linear(1, 1, bias=False)
    measure = Evaluator(
        module, {"all": data}, nn.functional.mse_loss, {"largest": largest}, batch_size=2
    )
    assert measure(torch.ones(1).numpy())["largest"] == 4.0
    assert seen == [(5, 5)]


def test_an_accuracy_of_the_users_own_takes_the_place_of_ours() -> None:
    data = TensorExamples(torch.ones(4, 1), torch.tensor([[1.0], [2.0], [1.1], [0.0]]))
    own = {"accuracy": lambda out, y: ((out - y).abs() < 0.2).float().mean()}
    measure = Evaluator(nn.Linear(1, 1, bias=False), {"all": data}, nn.functional.mse_loss, own)
    assert measure(torch.ones(1).numpy())["accuracy"] == 0.5


def test_scores_of_the_wrong_shape_are_refused_with_what_to_pass() -> None:
    data = TensorExamples(torch.ones(4, 1), torch.ones(4, 1, dtype=torch.long))
    measure = Evaluator(nn.Linear(1, 1, bias=False), {"all": data}, lambda out, _: out.sum())
    with pytest.raises(SettingError, match=r"given \(4, 1\) and \(4, 1\): pass metrics="):
        measure(torch.ones(1).numpy())


class Noisy(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + torch.randn(len(x), 2)


def test_a_module_that_draws_at_random_is_measured_alike_each_time() -> None:
    data = TensorExamples(torch.zeros(50, 1), torch.zeros(50, dtype=torch.long))
    weights = torch.zeros(2).numpy()
    found = set()
    for seed in range(3):
        torch.manual_seed(seed)
        found.add(Evaluator(Noisy(1, 2, bias=False), {"all": data})(weights)["loss"])
    assert len(found) == 1


def test_every_client_is_measured_on_its_own_and_all_together() -> None:
    # Scores (x, 0): class 0 for x > 0. Client a has one right of one, client b one right of three.
    parts = {
        "a": TensorExamples(torch.tensor([[2.0]]), torch.tensor([0])),
        "b": TensorExamples(torch.tensor([[2.0], [1.0], [-1.0]]), torch.tensor([1, 0, 0])),
    }
    evaluate = Evaluator(nn.Linear(1, 2, bias=False), parts)
    weights = torch.tensor([1.0, 0.0]).numpy()
    of_each = evaluate.of_each(weights)
    assert [of_each[name]["accuracy"] for name in "ab"] == [1.0, pytest.approx(1 / 3)]
    assert evaluate(weights)["accuracy"] == 0.5
