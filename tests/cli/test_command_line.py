"""The command line as a user meets it."""

import csv
import json
import os
import pty
import re
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from asyncfeded.cli.options import OF_THE_RULE, flag
from asyncfeded.experiment.settings import setting_names
from command_line import asyncfeded as asyncfeded_process
from command_line import asyncfeded_here as asyncfeded
from command_line import start_asyncfeded
from waiting import wait_until

QUICK = ["--seconds", "2", "--clients", "4", "--evaluate-every", "1"]


@pytest.mark.slow
def test_a_run_in_a_process_of_its_own_writes_its_files(tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = asyncfeded_process(
        "run", *QUICK, "--rule", "asyncfeded", "--gamma-bar", "2", "--out", out
    )
    assert (done.returncode, done.stderr) == (0, "")
    summary = json.loads((out / "summary.json").read_text())
    assert summary["log_sha256"] == sha256((out / "events.jsonl").read_bytes()).hexdigest()
    assert summary["settings"]["hyperparameters"]["gamma_bar"] == 2.0
    assert summary["settings"]["learning_rate"] == 0.01
    assert summary["versions"] == summary["updates"] + 1
    assert summary["rejected"] == {}
    assert summary["package_version"]
    with (out / "accuracy.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["seconds"]) for row in rows] == [0, 1, 2]
    assert max(float(row["accuracy"]) for row in rows) == summary["max_accuracy"]
    with (out / "clients.csv").open() as file:
        clients = list(csv.DictReader(file))
    assert [client["client"] for client in clients] == [f"client-{i}" for i in range(4)]
    assert sum(int(client["updates"]) for client in clients) == summary["updates"]
    accuracies = [float(client["accuracy"]) for client in clients]
    assert min(accuracies) <= summary["client_accuracy_p5"] <= summary["client_accuracy_p95"]
    assert summary["client_accuracy_p95"] <= max(accuracies)
    assert (out / "accuracy.png").read_bytes().startswith(b"\x89PNG")
    events = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
    assert sum(event["event"] == "update" for event in events) == summary["updates"]
    for word in ("version", "accuracy", "γ", "mean K", "updates/s"):
        assert word in done.stdout


def test_workers_folder_and_interval_do_not_change_the_log(tmp_path: Path) -> None:
    variants: list[list[str]] = [
        ["--workers", "1"],
        ["--workers", "2"],
        ["--workers", "2", "--evaluate-every", "0.5", "--history", "everything"],
    ]
    digests = set()
    for index, variant in enumerate(variants):
        out = tmp_path / f"out-{index}"
        assert asyncfeded("run", *QUICK, *variant, "--out", out).returncode == 0
        digests.add(json.loads((out / "summary.json").read_text())["log_sha256"])
    assert len(digests) == 1


def test_a_file_gives_settings_and_options_override_it(tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    config.write_text('rule = "fedbuff"\nbuffer_size = 3\nseconds = 2\nclients = 4\nseed = 5\n')
    out = tmp_path / "run"
    done = asyncfeded("run", "--config", config, "--seed", "6", "--out", out)
    assert (done.returncode, done.stderr) == (0, "")
    settings = json.loads((out / "summary.json").read_text())["settings"]
    assert (settings["rule"], settings["seed"]) == ("fedbuff", 6)
    assert settings["hyperparameters"]["buffer_size"] == 3


def test_a_comparison_prints_a_table_and_draws_a_plot(tmp_path: Path) -> None:
    out = tmp_path / "compare"
    rules = ["--rule", "asyncfeded", "--rule", "fedavg"]
    seeds = ["--seed", "0", "--seed", "1", "--target", "0.999"]
    done = asyncfeded("compare", *QUICK, *rules, *seeds, "--out", out)
    assert (done.returncode, done.stderr) == (0, "")
    headings = "max accuracy +90 % of its own maximum +99.9 % after +p vs. best +clients 5–95 % "
    assert re.search(headings, done.stdout)
    assert len(re.findall("never|n too small", done.stdout)) == 3
    assert re.search(r"asyncfeded +\d+\.\d\d% ± \d+\.\d\d%", done.stdout)
    with (out / "compare.csv").open() as file:
        rows = {row["rule"]: row for row in csv.DictReader(file)}
    accuracies = []
    for seed in (0, 1):
        run = json.loads((out / "fedavg" / f"seed-{seed}" / "summary.json").read_text())
        accuracies.append(run["max_accuracy"])
    assert float(rows["fedavg"]["max_accuracy_mean"]) == pytest.approx(sum(accuracies) / 2)
    assert (out / "compare.png").read_bytes().startswith(b"\x89PNG")
    runs = json.loads((out / "summary.json").read_text())["runs"]
    assert [(r["settings"]["rule"], r["settings"]["seed"]) for r in runs] == [
        ("asyncfeded", 0),
        ("asyncfeded", 1),
        ("fedavg", 0),
        ("fedavg", 1),
    ]
    assert runs[0]["settings"]["hyperparameters"]["lam"] == 5.0


def test_rules_in_a_comparison_meet_the_same_initial_model_and_devices(tmp_path: Path) -> None:
    rules = ["--rule", "fedasync-constant", "--rule", "fedbuff"]
    assert asyncfeded("compare", *QUICK, *rules, "--out", tmp_path).returncode == 0
    logs = [
        [json.loads(line) for line in path.read_text().splitlines()]
        for path in sorted(tmp_path.glob("*/seed-0/events.jsonl"))
    ]
    assert len(logs) == 2
    first, second = (
        {e["client"]: e["seconds"] for e in log if e.get("round") == 0} for log in logs
    )
    assert first == second
    assert logs[0][0]["parameters_sha256"] == logs[1][0]["parameters_sha256"]


BAD_COMMANDS: list[tuple[list[str], str]] = [
    (["--suspention", "0.1"], "Did you mean '--suspension'?"),
    (["--suspension", "-0.1"], "suspension must be greater than or equal to 0; given '-0.1'"),
    (["--suspension", "1"], "suspension must be less than or equal to 0.999; given '1'"),
    (["--clients", "0"], "clients must be greater than or equal to 1; given '0'"),
    (["--initial-epochs", "0"], "initial_epochs must be at least 1; given 0"),
    (["--rule", "fedagv"], "did you mean 'fedavg'?"),
    (
        ["--task", "mnist"],
        "'synthetic-α-β', such as 'synthetic-1-1', or FILE.py:factory; given 'mnist'",
    ),
    (["--task", "femnist"], "task 'femnist' needs data in "),
    (["--task", "shakespeare", "--data-dir", "nowhere"], "needs data in 'nowhere/shakespeare'"),
    (["--widths", "16"], "widths must be two numbers; given '16'"),
    (["--widths", "16,0"], "widths must be greater than 0; given '0'"),
    (["--widths", "9999999,9999999"], "widths must make a model of at most 1,000,000,000 param"),
    (["--data-dir", ""], "data_dir must be the path of a folder; given an empty text"),
    (["--widths", "16,x"], "widths must be a valid integer"),
    (["--min-examples", "10"], "min_examples chooses among the clients of real data"),
    (["--max-examples", "1"], "max_examples must be greater than or equal to 2; given '1'"),
    (["--config", "missing.toml"], "'missing.toml' cannot be read: No such file"),
    (["--config", "bad.toml"], "'bad.toml' is not TOML"),
    (["--config", "typo.toml"], "unknown setting 'suspention': did you mean 'suspension'?"),
    (["--out", "bad.toml"], "out 'bad.toml' cannot be written: File exists"),
    (["--out", "/proc/nowhere"], "out '/proc/nowhere' cannot be written"),
    (["--devices", "paper-synthetic", "--clients", "4"], "describes 10 clients; given 4"),
    (["--gamma-bar", "1e300", "--kappa", "1e10"], "gamma_bar must be at least 0 and at most 1e+06"),
    (["surprise"], "unexpected extra argument (surprise)"),
]


@pytest.mark.parametrize(
    ("arguments", "message"), BAD_COMMANDS, ids=[" ".join(a) for a, _ in BAD_COMMANDS]
)
def test_bad_input_is_one_line_exit_code_2_and_leaves_nothing(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    (tmp_path / "bad.toml").write_text("rule: asyncfeded")
    (tmp_path / "typo.toml").write_text("suspention = 0.1")
    before = sorted(tmp_path.rglob("*"))
    done = asyncfeded("run", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.slow
def test_a_process_of_its_own_ends_with_the_same_line_and_exit_code() -> None:
    arguments = ["run", "--suspention", "0.1"]
    process, here = asyncfeded_process(*arguments), asyncfeded(*arguments)
    assert (process.returncode, process.stdout) == (2, "")
    assert process.stderr == here.stderr


def test_the_results_of_another_run_are_not_overwritten_unless_told_to(tmp_path: Path) -> None:
    assert asyncfeded("run", *QUICK, "--out", tmp_path).returncode == 0
    before = (tmp_path / "summary.json").read_bytes()
    again = asyncfeded("run", *QUICK, "--seed", "1", "--out", tmp_path)
    assert (again.returncode, again.stdout) == (2, "")
    assert "give --overwrite" in again.stderr
    assert (tmp_path / "summary.json").read_bytes() == before
    assert (
        asyncfeded("run", *QUICK, "--seed", "1", "--out", tmp_path, "--overwrite").returncode == 0
    )
    assert json.loads((tmp_path / "summary.json").read_text())["settings"]["seed"] == 1


@pytest.mark.parametrize("command", ["run", "compare"])
def test_help_has_examples_and_every_hyperparameter(command: str) -> None:
    done = asyncfeded(command, "--help")
    assert done.returncode == 0
    assert f"asyncfeded {command} --" in done.stdout
    for option in ("--suspension", "--gamma-bar", "--buffer-size", "--mu", "--config"):
        assert option in done.stdout


@pytest.mark.parametrize("command", ["run", "compare", "sweep"])
def test_help_lists_every_setting_before_the_hyperparameters(command: str) -> None:
    settings, hyperparameters = asyncfeded(command, "--help").stdout.split(OF_THE_RULE)
    flags = re.findall(r"^  (?:-h, )?(--[\w-]+)", settings, re.MULTILINE)
    assert {flag(name) for name in setting_names()} <= set(flags)
    assert not {"--lam", "--alpha"} & set(flags)
    assert not {flag(name) for name in setting_names()} & set(hyperparameters.split())


@pytest.mark.slow
def test_a_terminal_shows_live_progress(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "asyncfeded", "run", *QUICK, "--out", str(tmp_path)]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "140"}
    process = subprocess.Popen(command, stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    shown = b""
    while True:
        try:
            shown += os.read(master, 4096)
        except OSError:
            break
    os.close(master)
    assert process.wait() == 0
    text = shown.decode()
    assert "100%" in text
    assert "━" in text
    assert re.search("updates/(s|min)", text)  # by the minute on a busy machine


@pytest.mark.slow
def test_an_interrupt_ends_a_run_without_a_traceback_or_a_process_left(tmp_path: Path) -> None:
    process = start_asyncfeded("run", "--seconds", "1e6", "--workers", "2", "--out", tmp_path)
    log = tmp_path / "events.jsonl"
    wait_until(lambda: process.poll() is not None or (log.exists() and log.stat().st_size))
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert errors.strip().startswith("interrupted; ")
    assert (tmp_path / "model.safetensors").exists()
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_finished_runs_inside_a_comparison_are_not_overwritten_either(tmp_path: Path) -> None:
    rules = ["--rule", "fedavg", "--out", str(tmp_path)]
    assert asyncfeded("compare", *QUICK, *rules).returncode == 0
    for name in ("summary.json", "compare.csv", "compare.png"):
        (tmp_path / name).unlink()
    again = asyncfeded("compare", *QUICK, *rules)
    assert again.returncode == 2
    assert "seed-0' holds summary.json, which this run would write" in again.stderr


def test_momentum_may_be_zero(tmp_path: Path) -> None:
    assert asyncfeded("run", *QUICK, "--momentum", "0", "--out", tmp_path).returncode == 0


def test_a_hundred_thousand_clients_of_whom_a_few_are_at_work(tmp_path: Path) -> None:
    many = ["--clients", "100000", "--at-work", "4", "--max-examples", "60", "--test-clients", "20"]
    digests = set()
    for workers in ("1", "2"):
        out = tmp_path / workers
        options = ["--seconds", "1", "--widths", "20,10", "--workers", workers, "--out", str(out)]
        done = asyncfeded("run", *many, *options)
        assert (done.returncode, done.stderr) == (0, "")
        digests.add(json.loads((out / "summary.json").read_text())["log_sha256"])
    assert len(digests) == 1
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["kernel"], summary["settings"]["kernel"]) == ("compiled", "compiled")
    with (out / "clients.csv").open() as file:
        clients = list(csv.DictReader(file))
    heard = [client for client in clients if int(client["updates"])]
    assert 15 < len(heard) <= summary["updates"]
    assert {int(client["examples"]) for client in heard} <= set(range(45, 55))
    assert sum(client["accuracy"] != "" for client in clients) == 20
    events = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
    assert sum(event["event"] == "join" for event in events) == 4
    assert sum(event["event"] == "replace" for event in events) == len(
        [event for event in events if event["event"] in ("update", "lose")]
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--at-work", "11"], "at_work must be at most 10, the clients; given 11"),
        (["--at-work", "2", "--leave", "client-1@1"], "join and leave must be left out"),
        (["--history", "sketch", "--rule", "fedasync-hinge"], "under rule 'fedasync-hinge'"),
        (["--sketch-buckets", "0"], "sketch_buckets must be greater than or equal to 1; given '0'"),
        (["--kernel", "compiled", "--task", "femnist-standin"], "it calls 'getitem'"),
        (["--kernel", "gpu"], "kernel must be 'auto', 'torch' or 'compiled'; given 'gpu'"),
    ],
)
def test_what_cannot_be_run_so_is_said_before_anything_is_written(
    tmp_path: Path, options: list[str], message: str
) -> None:
    done = asyncfeded("run", *options, "--out", tmp_path / "out")
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kernel", ["torch", "compiled"])
def test_sketches_and_either_kernel_run_from_the_command_line(tmp_path: Path, kernel: str) -> None:
    sketches = ["--history", "sketch", "--sketch-buckets", "1024", "--kernel", kernel]
    done = asyncfeded("run", *QUICK, *sketches, "--out", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads((tmp_path / "summary.json").read_text())["kernel"] == kernel
