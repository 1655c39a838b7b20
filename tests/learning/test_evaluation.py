import pytest
import torch
from torch import nn

from asyncfeded.learning.datasets import TensorExamples
from asyncfeded.learning.evaluation import Evaluator


def test_accuracy_and_loss_worked_by_hand() -> None:
    # Scores (x, 0) for x = 2, −2, 1: classes 0, 1, 0. Targets 0, 1, 1: two of three are right.
    module = nn.Linear(1, 2, bias=False)
    data = TensorExamples(torch.tensor([[2.0], [-2.0], [1.0]]), torch.tensor([0, 1, 1]))
    evaluate = Evaluator(module, data, batch_size=2)
    accuracy, loss = evaluate(torch.tensor([1.0, 0.0]).numpy())
    assert accuracy == pytest.approx(2 / 3)
    # ln(1 + e^−2), twice, and ln(1 + e^1).
    assert loss == pytest.approx((0.126928 * 2 + 1.313262) / 3, rel=1e-5)


def test_evaluation_uses_running_statistics_and_changes_none() -> None:
    module = nn.Sequential(nn.BatchNorm1d(2))
    data = TensorExamples(torch.randn(10, 2) + 5, torch.zeros(10, dtype=torch.long))
    evaluate = Evaluator(module, data)
    parameters = torch.cat([p.reshape(-1).float() for p in module.state_dict().values()]).numpy()
    assert evaluate(parameters) == evaluate(parameters)
    assert module.state_dict()["0.running_mean"].tolist() == [0, 0]
