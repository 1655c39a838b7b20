"""The settings of a run, read once at the edge.

Settings and the rule's hyperparameters share one flat set of names, on the command line as in a
file. Whatever is wrong with one is said in one line that names it, its limit and its value.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from math import floor, inf, isfinite, log10
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from asyncfeded import own_code
from asyncfeded.cluster.address import check_address
from asyncfeded.core.errors import FileError, SettingError, require
from asyncfeded.experiment.hyperparameters import (
    all_hyperparameters,
    build_rule,
    factory_of,
    known_hyperparameters,
    unknown,
)
from asyncfeded.experiment.setting_groups import (
    TheCarryingOut,
    TheData,
    TheDevices,
    TheServer,
    TheTraining,
    WhatIsRun,
)
from asyncfeded.learning.local_training import CPU
from asyncfeded.on_demand import ClientNames
from asyncfeded.reading import read_text
from asyncfeded.rules import REGISTRY
from asyncfeded.runtime.limits import check_at_work, check_evaluations
from asyncfeded.runtime.membership import Membership
from asyncfeded.tasks.registry import find_task

MOST_DIGITS = 19
MOST_CONFIG_BYTES = 2**20
TEXTS = ("task", "rule", "out", "data_dir", "hangs_from", "availability", "ray_address")


class RunSettings(TheCarryingOut, TheServer, TheTraining, TheDevices, TheData, WhatIsRun):
    """Everything that decides what a run does and how it is carried out.

    None stands for the task's own value. `hyperparameters` holds what was given for the rule.
    """

    hyperparameters: dict[str, Any] = Field(default_factory=dict, exclude=True)

    def memberships(self, names: Sequence[str]) -> list[Membership] | None:
        """When each client joins and leaves; None if a selection says who is at work."""
        if self.at_work is not None:
            return None
        joins = _clients_at("join", self.join, names)
        leaves = _clients_at("leave", self.leave, names)
        return [Membership(name, joins.get(name, 0.0), leaves.get(name, inf)) for name in names]


def setting_names() -> list[str]:
    """The names of all settings, without the rules' hyperparameters."""
    return [name for name in RunSettings.model_fields if name != "hyperparameters"]


def run_settings(values: Mapping[str, Any]) -> RunSettings:
    """Check the settings of one run, given by name."""
    plain, given = _split(values, _places(values.get("rule")))
    rule = plain.setdefault("rule", "asyncfeded")
    _check_rules([rule], given)
    return _validated({**plain, "hyperparameters": given})


def comparison_settings(values: Mapping[str, Any]) -> list[RunSettings]:
    """Check the settings of several runs: `rule` and `seed` may be lists, all pairs are run.

    A hyperparameter goes to every rule that has it.
    """
    plain, given = _split(values, _places(values.get("rule")))
    rules = _as_list(plain.pop("rule"))
    seeds = _as_list(plain.pop("seed", 0))
    for name, values_of in (("rule", rules), ("seed", seeds)):
        if not values_of:
            raise SettingError(f"{name} must be given at least once; given an empty list")
        if any(values_of.count(value) > 1 for value in values_of):
            raise SettingError(f"{name} must be given without repeats; given {values_of}")
    _check_rules(rules, given)
    return [
        _validated(
            {
                **plain,
                "rule": rule,
                "seed": seed,
                "hyperparameters": {
                    n: v for n, v in given.items() if n in known_hyperparameters(rule)
                },
            }
        )
        for rule in rules
        for seed in seeds
    ]


def _check_rules(rules: list[Any], given: Iterable[str]) -> None:
    """Refuse a rule that there is not, and a hyperparameter that none of the rules has."""
    for rule in rules:
        factory_of(rule)
    for name in given:
        if not any(name in known_hyperparameters(rule) for rule in rules):
            raise SettingError(_foreign(name, rules))


def read_config(path: Path) -> dict[str, Any]:
    """Read settings from a TOML file."""
    try:
        settings = tomllib.loads(read_text(path, MOST_CONFIG_BYTES))
        return {name.replace("-", "_"): value for name, value in settings.items()}
    except OSError as error:
        raise FileError(f"config {str(path)!r} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileError(f"config {str(path)!r} is not TOML: {error}") from None
    except RecursionError:
        raise FileError(f"config {str(path)!r} is not TOML: too deeply nested") from None
    except ValueError as error:  # such as a number of more digits than Python reads
        raise FileError(f"config {str(path)!r} cannot be read: {error}") from None


def _places(rules: Any) -> list[str]:
    """The rules that are not of the registry."""
    return [rule for rule in _as_list(rules) if isinstance(rule, str) and rule not in REGISTRY]


def _split(
    values: Mapping[str, Any], more_rules: Iterable[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Part settings from hyperparameters; refuse what is neither."""
    known, of_rules = setting_names(), all_hyperparameters(more_rules)
    for name in known:
        if name in of_rules:
            owner = of_rules[name][0][0]
            raise SettingError(
                f"rule {owner!r}: its hyperparameter {name!r} has the name of a setting: rename it"
            )
    plain: dict[str, Any] = {}
    given: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known and name not in of_rules:
            raise SettingError(unknown("setting", name, [*known, *of_rules]))
        if isinstance(value, bool):
            raise SettingError(f"{name} must be a number or a text; given {str(value).lower()}")
        for one in _as_list(value):
            _check_digits(name, one)
        (plain if name in known else given)[name] = value
    return plain, given


def _check_digits(name: str, value: object) -> None:
    """Refuse a whole number that no computer's number can hold."""
    if name in TEXTS or not isinstance(value, str | int):
        return
    if isinstance(value, int):
        digits = 1 if value == 0 else 1 + floor(log10(abs(value)))
    else:
        text = value.strip().lstrip("+-")
        digits = len(text) if text.isdecimal() else 0
    if digits > MOST_DIGITS:
        raise SettingError(f"{name} must be below 10^{MOST_DIGITS}; given {digits} digits")


def _validated(values: Mapping[str, Any]) -> RunSettings:
    try:
        settings = RunSettings.model_validate(values)
    except ValidationError as error:
        problem = error.errors()[0]
        name = str(problem["loc"][0])
        limit = problem["msg"].replace("Input should be", "must be")
        if problem["type"] == "path_type":
            limit = "must be a path"
        about = RunSettings.model_fields[name].description
        raise SettingError(f"{name} {limit}; given {problem['input']!r} ({about})") from None
    for name in ("out", "data_dir"):
        if values.get(name) == "":
            raise SettingError(f"{name} must be the path of a folder; given an empty text")
    own_code.check_file("task", settings.task)
    is_own = own_code.is_own("task", settings.task)  # whose clients are not known yet
    if settings.at_work is not None:
        if settings.at_work > settings.clients and not is_own:
            raise SettingError(
                f"at_work must be at most {settings.clients}, the clients; given {settings.at_work}"
            )
        if settings.join or settings.leave:
            raise SettingError("join and leave must be left out where at_work is given")
    else:
        check_at_work(settings.clients)
    if settings.hang_draws == "authors":
        if settings.hangs_from is not None:
            raise SettingError("hangs_from must be left out where hang_draws is 'authors'")
        if settings.hangs == "delay":
            raise SettingError("hangs must be 'lose' where hang_draws is 'authors'; given 'delay'")
    check_evaluations(settings.seconds, settings.evaluate_every)
    _check_availability(settings)
    _check_world(settings)
    for name in ("hangs_from", "availability"):
        path = getattr(settings, name)
        if path is not None and not path.is_file():
            raise FileError(f"{name} {str(path)!r} cannot be read: there is no such file")
    if not is_own:
        settings.memberships(ClientNames(settings.clients))
        task = find_task(settings.task)
        build_rule(
            settings.rule, {**task.rule_settings.get(settings.rule, {}), **settings.hyperparameters}
        )
    return settings


def _check_availability(settings: RunSettings) -> None:
    """Refuse a file of another kind, and what does nothing without a file."""
    path = settings.availability
    if path is None:
        for name in ("when_away", "repeat_every"):
            if getattr(settings, name) != RunSettings.model_fields[name].default:
                raise SettingError(
                    f"{name} needs availability; given {getattr(settings, name)!r} alone"
                )
    elif path.suffix not in (".csv", ".json"):
        raise SettingError(f"availability must be a .csv or .json file; given {str(path)!r}")


def _check_world(settings: RunSettings) -> None:
    """Refuse what does not go together with where a run happens."""
    if settings.availability is not None and settings.devices == "real":
        require(settings.when_away == "lose", "when_away", "'lose' with devices 'real'", "later")
    if settings.on == "ray" and settings.at_work is not None:
        raise SettingError(
            f"at_work must be left out on ray, where every client is a process; "
            f"given {settings.at_work}"
        )
    apart = settings.workers > 1 or "ray" in (settings.on, settings.workers_on)
    if settings.device != CPU and apart:
        raise SettingError(
            f"device must be 'cpu' with several workers and on ray; given {settings.device!r}"
        )
    if settings.on == "virtual" and settings.devices == "real":
        raise SettingError("devices must not be 'real' on the virtual clock: add --on ray")
    check_address("ray_address", settings.ray_address)
    if settings.ray_address is not None and "ray" not in (settings.on, settings.workers_on):
        raise SettingError(
            f"ray_address needs --on ray or --workers-on ray; given {settings.ray_address!r} alone"
        )


def _clients_at(setting: str, entries: Iterable[str], names: Sequence[str]) -> dict[str, float]:
    """Read entries such as client-3@60."""
    found = {}
    for entry in entries:
        name, _, seconds = entry.partition("@")
        if name not in names:
            raise SettingError(f"{setting} {entry!r}: {unknown('client', name, names)}")
        try:
            found[name] = float(seconds)
        except ValueError:
            found[name] = inf
        if not isfinite(found[name]):
            raise SettingError(
                f"{setting} must be CLIENT@SECONDS, such as {name}@60; given {entry!r}"
            )
    return found


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _foreign(name: str, rules: list[str]) -> str:
    have = ", ".join(rule for rule, _ in all_hyperparameters(rules)[name])
    return f"{name} is no hyperparameter of {', '.join(rules)}; it belongs to {have}"
