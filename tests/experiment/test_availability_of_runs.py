"""A run whose clients come and go, from its settings."""

import json
from pathlib import Path

import pytest

from asyncfeded.core.errors import SettingError
from asyncfeded.experiment.run import run_experiment
from asyncfeded.experiment.settings import run_settings
from command_line import asyncfeded_here as asyncfeded

QUICK = {"task": "synthetic-1-1", "clients": 4, "seconds": 6, "suspension": 0, "test_clients": 4}


@pytest.fixture
def times(tmp_path: Path) -> Path:
    """Every two seconds, client-0 is away for one; the others are there."""
    path = tmp_path / "times.csv"
    others = "".join(f"client-{number},0,2\n" for number in (1, 2, 3))
    path.write_text(f"client,start,end\nclient-0,0.5,1.5\n{others}")
    return path


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Three users of a public trace, all of them there half of the time."""
    path = tmp_path / "trace.json"
    users = {str(n): {"active": [n], "inactive": [n + 3], "finish_time": 6} for n in range(3)}
    path.write_text(json.dumps(users))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"at_work": 3, "seconds": 12}, {"rule": "fedavg"}])
def test_a_run_loses_the_rounds_of_who_goes_away(times: Path, options: dict[str, object]) -> None:
    settings = {**QUICK, "availability": str(times), "repeat_every": 2, "when_away": "lose"}
    settings["initial_epochs"] = 2
    result = run_experiment(run_settings({**settings, **options}))
    assert set(result.lost_rounds) == {"away"}
    assert result.clients["client-0"].lost_rounds == result.lost_rounds["away"]
    assert result.updates > 1
    again = run_experiment(run_settings({**settings, **options, "workers": 2}))
    assert again.log_sha256 == result.log_sha256
    later = run_experiment(run_settings({**settings, **options, "when_away": "later"}))
    assert not later.lost_rounds
    assert later.updates > 1


def test_the_command_line_reads_a_public_trace(trace: Path, tmp_path: Path) -> None:
    options = [
        word
        for name, value in QUICK.items()
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]
    digests: set[str] = set()
    for seed in ("0", "1"):
        out = tmp_path / seed
        done = asyncfeded(
            *("run", *options, "--availability", str(trace), "--when-away", "lose"),
            *("--seed", seed, "--out", str(out)),
        )
        assert (done.returncode, done.stderr) == (0, "")
        summary = json.loads((out / "summary.json").read_text())
        assert summary["lost_rounds"]["away"] > 0
        assert summary["settings"]["availability"] == str(trace)
        digests.add(summary["log_sha256"])
    assert len(digests) == 2


def test_a_wrong_file_is_named_in_one_line_and_nothing_is_written(tmp_path: Path) -> None:
    path, out = tmp_path / "a.csv", tmp_path / "run"
    path.write_text("client,start,end\nclient-0,5,3\n")
    done = asyncfeded("run", "--seconds", "2", "--availability", path, "--out", out)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"error: {str(path)!r}, line 2: end must be a number above 5, the start; given '3'"
    ]
    assert not list(out.glob("*"))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"availability": "a.txt"}, "availability must be a .csv or .json file; given 'a.txt'"),
        ({"when_away": "lose"}, "when_away needs availability; given 'lose' alone"),
        ({"repeat_every": 60}, "repeat_every needs availability; given 60.0 alone"),
        ({"when_away": "wait"}, "when_away must be 'later' or 'lose'"),
        (
            {"availability": "a.csv", "on": "ray", "devices": "real"},
            "when_away must be 'lose' with devices 'real'; given 'later'",
        ),
    ],
)
def test_settings_that_do_not_fit_are_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(SettingError) as caught:
        run_settings(values)
    assert message in str(caught.value)
