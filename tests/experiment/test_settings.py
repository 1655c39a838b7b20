from pathlib import Path

import pytest

from asyncfeded.core.errors import AsyncFedEDError, FileError, SettingError
from asyncfeded.experiment.hyperparameters import (
    all_hyperparameters,
    build_rule,
    known_hyperparameters,
)
from asyncfeded.experiment.settings import comparison_settings, read_config, run_settings
from asyncfeded.rules import REGISTRY


def test_values_come_as_text_or_as_numbers() -> None:
    as_text = run_settings({"seconds": "60", "clients": "5", "lam": "2.5", "max_epochs": "none"})
    as_numbers = run_settings({"seconds": 60, "clients": 5})
    assert as_text.seconds == as_numbers.seconds == 60.0
    assert as_text.clients == as_numbers.clients == 5
    rule = build_rule("asyncfeded", as_text.hyperparameters)
    assert (rule.settings["lam"], rule.settings["max_epochs"]) == (2.5, None)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"suspention": 0.1}, "unknown setting 'suspention': did you mean 'suspension'?"),
        ({"gama_bar": 1}, "unknown setting 'gama_bar': did you mean 'gamma_bar'?"),
        ({"hyperparameters": {}}, "unknown setting 'hyperparameters'"),
        ({"suspension": -0.1}, "suspension must be greater than or equal to 0; given -0.1 (P,"),
        ({"suspension": 1}, "suspension must be less than or equal to 0.999; given 1 (P,"),
        ({"clients": 0}, "clients must be greater than or equal to 1; given 0"),
        ({"clients": 2.5}, "clients must be a valid integer"),
        ({"clients": True}, "clients must be a number or a text; given true"),
        ({"out": ""}, "out must be the path of a folder"),
        ({"rule": "fedasync-constant", "a": 3}, "a is no hyperparameter of fedasync-constant"),
        ({"seconds": "soon"}, "seconds must be a valid number"),
        ({"seconds": float("inf")}, "seconds must be a finite number"),
        ({"rule": "fedagv"}, "unknown rule 'fedagv': did you mean 'fedavg'?"),
        ({"rule": ["fedavg"]}, "unknown rule ['fedavg']"),
        ({"seed": [1, 2]}, "seed must be a valid integer"),
        ({"rule": "fedavg", "mu": 1}, "mu is no hyperparameter of fedavg; it belongs to fedprox"),
        ({"devices": "phones"}, "devices must be 'auto', 'heterogeneous'"),
        ({"join": ["client-10@5"]}, "unknown client 'client-10'"),
        ({"join": ["client-1"]}, "join must be CLIENT@SECONDS, such as client-1@60"),
        ({"join": ["client-1@nan"]}, "join must be CLIENT@SECONDS"),
        ({"join": ["client-1@9"], "leave": ["client-1@3"]}, "leave_seconds must be after"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(values: dict[str, object], message: str) -> None:
    with pytest.raises(SettingError) as caught:
        run_settings(values)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_comparison_is_every_rule_with_every_seed() -> None:
    every = comparison_settings({"rule": ["asyncfeded", "fedavg"], "seed": [0, 1], "lam": 3})
    assert [(s.rule, s.seed, s.hyperparameters) for s in every] == [
        ("asyncfeded", 0, {"lam": 3}),
        ("asyncfeded", 1, {"lam": 3}),
        ("fedavg", 0, {}),
        ("fedavg", 1, {}),
    ]


def test_late_joiners_and_leavers_are_read() -> None:
    settings = run_settings({"clients": 2, "join": ["client-1@5"], "leave": ["client-0@7.5"]})
    memberships = settings.memberships(["client-0", "client-1"])
    assert memberships is not None
    first, second = memberships
    assert (first.join_seconds, first.leave_seconds) == (0.0, 7.5)
    assert (second.join_seconds, second.leave_seconds) == (5.0, float("inf"))


@pytest.mark.parametrize("rule", REGISTRY)
def test_every_setting_of_a_rule_can_be_given_and_has_a_help_text(rule: str) -> None:
    assert set(known_hyperparameters(rule)) == set(REGISTRY[rule]().settings)
    for name, hyperparameter in known_hyperparameters(rule).items():
        assert len(hyperparameter.help) > 10, name
    defaults = {name: h.default for name, h in known_hyperparameters(rule).items()}
    assert build_rule(rule, defaults).settings == REGISTRY[rule]().settings


def test_a_hyperparameter_of_the_wrong_type_is_named() -> None:
    with pytest.raises(SettingError, match=r"^lam must be a valid number.*given 'much' \(λ"):
        build_rule("asyncfeded", {"lam": "much"})
    assert "weighting" not in all_hyperparameters()


def test_a_file_gives_the_same_settings(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text('rule = "fedbuff"\nsuspension = 0.3\nbuffer_size = 4\n')
    settings = run_settings(read_config(path))
    assert (settings.rule, settings.suspension) == ("fedbuff", 0.3)
    assert settings.hyperparameters == {"buffer_size": 4}


@pytest.mark.parametrize("content", [b"rule: asyncfeded", b"\xff\xfe\x00", b"a = 1\na = 2\n"])
def test_a_file_that_is_not_toml_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"bad\.toml' is not TOML: "):
        read_config(path)
    with pytest.raises(AsyncFedEDError, match="cannot be read: No such file"):
        read_config(tmp_path / "missing.toml")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rule": []}, "rule must be given at least once"),
        ({"rule": ["fedavg"], "seed": []}, "seed must be given at least once"),
        ({"rule": ["fedavg", "fedavg"]}, "rule must be given without repeats"),
        ({"rule": ["fedavg"], "seed": [1, 1]}, "seed must be given without repeats"),
    ],
)
def test_a_comparison_needs_different_rules_and_seeds(
    values: dict[str, object], message: str
) -> None:
    with pytest.raises(SettingError, match=message):
        comparison_settings(values)


def test_names_in_a_file_may_be_written_like_options(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text("data-seed = 4\n")
    assert run_settings(read_config(path)).data_seed == 4
