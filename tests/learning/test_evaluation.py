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
    accuracy, loss = evaluate(torch.tensor([1.0, 0.0]).numpy())
    assert accuracy == pytest.approx(2 / 3)
    # ln(1 + e^−2), twice, and ln(1 + e^1).
    assert loss == pytest.approx((0.126928 * 2 + 1.313262) / 3, rel=1e-5)


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
    accuracy, _ = Evaluator(Scaled(1, 1, bias=False), {"all": data})(torch.ones(1).numpy())
    assert accuracy == 0.5


def test_outputs_that_are_no_scores_need_a_measure_of_their_own() -> None:
    data = TensorExamples(torch.ones(4, 1), torch.tensor([[1.0], [2.0], [1.1], [0.0]]))
    mse = nn.functional.mse_loss
    weights = torch.ones(1).numpy()
    without = Evaluator(nn.Linear(1, 1, bias=False), {"all": data}, mse)
    with pytest.raises(SettingError, match=r"given \(4, 1\) and \(4, 1\): pass correct="):
        without(weights)
    near = Evaluator(
        nn.Linear(1, 1, bias=False),
        {"all": data},
        mse,
        correct=lambda out, y: (out - y).abs() < 0.2,
    )
    assert near(weights)[0] == 0.5


class Noisy(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + torch.randn(len(x), 2)


def test_a_module_that_draws_at_random_is_measured_alike_each_time() -> None:
    data = TensorExamples(torch.zeros(50, 1), torch.zeros(50, dtype=torch.long))
    weights = torch.zeros(2).numpy()
    found = set()
    for seed in range(3):
        torch.manual_seed(seed)
        found.add(Evaluator(Noisy(1, 2, bias=False), {"all": data})(weights))
    assert len(found) == 1


def test_every_client_is_measured_on_its_own_and_all_together() -> None:
    # Scores (x, 0): class 0 for x > 0. Client a has one right of one, client b one right of three.
    parts = {
        "a": TensorExamples(torch.tensor([[2.0]]), torch.tensor([0])),
        "b": TensorExamples(torch.tensor([[2.0], [1.0], [-1.0]]), torch.tensor([1, 0, 0])),
    }
    evaluate = Evaluator(nn.Linear(1, 2, bias=False), parts)
    weights = torch.tensor([1.0, 0.0]).numpy()
    assert evaluate.of_each(weights) == {"a": 1.0, "b": pytest.approx(1 / 3)}
    assert evaluate(weights)[0] == 0.5
