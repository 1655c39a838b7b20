"""The task: tell which of five conditions a patient has, by 20 measurements.

Patients are drawn here in place of a hospital's own database. Hospitals differ: in how many they
have, in which conditions they see most, and in how they measure.
"""

import torch
from torch import Tensor, nn

MEASUREMENTS = 20
CONDITIONS = 5
SPREAD = 2.0


def make_model() -> nn.Module:
    """The model, the same for the server and for every hospital."""
    return nn.Sequential(
        nn.Linear(MEASUREMENTS, 64),
        nn.ReLU(),
        nn.Linear(64, 32),
        nn.ReLU(),
        nn.Linear(32, CONDITIONS),
    )


def patients_of(hospital: int, number: int) -> tuple[Tensor, Tensor]:
    """A hospital's own patients, of whom half have one of the two conditions it sees most."""
    draw = torch.Generator().manual_seed(1 + hospital)
    most = (hospital + torch.randint(2, (number,), generator=draw)) % CONDITIONS
    any_ = torch.randint(CONDITIONS, (number,), generator=draw)
    conditions = torch.where(torch.rand(number, generator=draw) < 0.5, most, any_)
    bias = 0.3 * torch.randn(MEASUREMENTS, generator=draw)  # the way this hospital measures
    return _measured(conditions, draw) + bias, conditions


def patients_of_a_study() -> tuple[Tensor, Tensor]:
    """The server's test data: patients of no hospital of the federation."""
    draw = torch.Generator().manual_seed(1000)
    conditions = torch.randint(CONDITIONS, (3000,), generator=draw)
    return _measured(conditions, draw), conditions


def _measured(conditions: Tensor, draw: torch.Generator) -> Tensor:
    """Every condition has two courses, so that no straight line tells them apart."""
    courses = torch.randn(CONDITIONS, 2, MEASUREMENTS, generator=torch.Generator().manual_seed(0))
    course = torch.randint(2, conditions.shape, generator=draw)
    noise = torch.randn(len(conditions), MEASUREMENTS, generator=draw)
    return SPREAD * courses[conditions, course] + 1.5 * noise
