"""Real data, stand-ins and the user's own data on the command line."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from command_line import asyncfeded as asyncfeded_process
from command_line import asyncfeded_here as asyncfeded
from leaf_folders import write_femnist, write_roles

PNG = b"\x89PNG"


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A folder with both data sets, which the environment names too."""
    write_femnist(tmp_path / "data" / "femnist", {f"f{i:04}": (40 + i, 5) for i in range(4)})
    write_roles(tmp_path / "data" / "shakespeare", dict.fromkeys("ABCD", 2000))
    return tmp_path / "data"


SMALL = {
    "femnist": ["--min-examples", "20", "--seconds", "1", "--widths", "4,8"],
    "femnist-standin": ["--max-examples", "40", "--seconds", "1", "--widths", "4,8"],
    "shakespeare": ["--min-examples", "100", "--max-examples", "40", "--widths", "4,8"],
    "shakespeare-standin": ["--max-examples", "40", "--seconds", "0.5", "--widths", "4,8"],
}
SMALL["shakespeare"] += ["--seconds", "0.5"]


@pytest.mark.slow
@pytest.mark.parametrize("task", SMALL)
def test_every_task_is_one_flag_away_and_exact(task: str, data_dir: Path, tmp_path: Path) -> None:
    digests = set()
    for workers in ("1", "2"):
        out = tmp_path / workers
        done = asyncfeded(
            *("run", "--task", task, "--clients", "3", *SMALL[task], "--evaluate-every", "0.25"),
            *("--workers", workers, "--out", out),
        )
        assert (done.returncode, done.stderr) == (0, "")
        summary = json.loads((out / "summary.json").read_text())
        digests.add(summary["log_sha256"])
        curve = (out / "accuracy.csv").read_text()
    assert len(digests) == 1
    assert summary["updates"] > 0
    assert (tmp_path / "1" / "accuracy.csv").read_text() == curve
    assert summary["settings"]["task"] == task
    assert ("(generated, not the real data)" in done.stdout) == ("standin" in task)
    assert summary["settings"]["widths"] == [4, 8]
    with (tmp_path / "1" / "clients.csv").open() as file:
        sources = [row["source"] for row in csv.DictReader(file)]
    assert all(source.startswith("generated-") == ("standin" in task) for source in sources)


def test_a_comparison_on_a_stand_in_says_so(tmp_path: Path) -> None:
    done = asyncfeded(
        *("compare", "--task", "femnist-standin", "--clients", "2", "--max-examples", "20"),
        *("--rule", "asyncfeded", "--seconds", "0.2", "--out", tmp_path / "out"),
    )
    assert "femnist-standin (generated, not the real data), P = 0.1, 2 clients" in done.stdout
    assert "clients 5–95 %" in done.stdout


def test_what_is_there_is_listed(data_dir: Path) -> None:
    done = asyncfeded("data", "list")
    assert (done.returncode, done.stderr) == (0, "")
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.strip()}
    # 40 + 41 + 42 + 43 images to train and 4 · 5 to test; 4 roles of 2,000 − 80 windows.
    assert rows["femnist"][:3] == ["4", "186", "62"]
    assert rows["shakespeare"][:3] == ["4", "7,680", "81"]
    assert rows["femnist-standin"][:2] == ["any", "number"]


def test_what_is_not_there_is_listed_with_the_way_to_get_it(tmp_path: Path) -> None:
    done = asyncfeded("data", "list", "--data-dir", tmp_path / "empty")
    assert done.returncode == 0
    assert "asyncfeded data fetch femnist" in " ".join(done.stdout.split())


def test_damaged_data_are_listed_as_such(data_dir: Path) -> None:
    (data_dir / "shakespeare" / "roles.json.gz").write_bytes(b"no gzip")
    done = asyncfeded("data", "list")
    assert done.returncode == 0
    assert "damaged" in done.stdout


def test_the_classes_of_a_tasks_clients_are_drawn(data_dir: Path, tmp_path: Path) -> None:
    out = tmp_path / "classes.png"
    samples = tmp_path / "samples.png"
    done = asyncfeded(
        *("data", "show", "femnist", "--clients", "3", "--min-examples", "20", "--out", out),
        *("--samples", samples),
    )
    assert samples.read_bytes().startswith(PNG)
    assert (done.returncode, done.stderr) == (0, "")
    assert "femnist, training examples: 3 clients" in done.stdout
    assert out.read_bytes().startswith(PNG)


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (["--partition", "iid"], "my.npz, iid: 5 clients, 100 examples (20 to 20 each), 4 classes"),
        (["--partition", "dirichlet", "--alpha", "0.3"], "my.npz, dirichlet (α = 0.3): 5 clients"),
        (["--partition", "shards"], "5 clients, 100 examples (20 to 20 each), 4 classes (2 to"),
        (["--partition", "column", "--column", "site"], "my.npz, column: 2 clients, 100 examples"),
    ],
)
def test_a_users_own_labels_are_dealt_out_and_drawn(
    options: list[str], shown: str, tmp_path: Path
) -> None:
    labels = np.repeat(np.arange(4), 25)
    sites = np.where(np.arange(100) % 2, "north", "south")
    np.savez(tmp_path / "my.npz", x=np.zeros((100, 3)), y=labels, site=sites)
    done = asyncfeded("data", "show", "my.npz", "--clients", "5", *options, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert shown in done.stdout
    assert (tmp_path / "classes.png").read_bytes().startswith(PNG)


def test_a_csv_file_has_its_columns_by_name(tmp_path: Path) -> None:
    rows = ["species,site", *(f"{'oak' if i % 3 else 'elm'},{i % 2}" for i in range(30))]
    (tmp_path / "trees.csv").write_text("\n".join(rows))
    done = asyncfeded(
        *("data", "show", "trees.csv", "--labels", "species", "--partition", "column"),
        *("--column", "site"),
        cwd=tmp_path,
    )
    assert "2 clients, 30 examples (15 to 15 each), 2 classes" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "my.npz"], "'my.npz' cannot be read"),
        (["show", "trees.parquet"], "'trees.parquet' must be an .npz file, or a .csv file"),
        (["show", "femnist-standin", "--alpha", "1"], "--alpha is for a file; given with femn"),
        (["show", "trees.csv", "--alpha", "1"], "--alpha is for --partition dirichlet; given with"),
        (["show", "trees.csv", "--max-examples", "9"], "--max-examples is for a task"),
        (["show", "no.npz"], "'no.npz' cannot be read"),
        (["show", "trees.csv"], "labels must be one of 'species', the columns of 'trees.csv'"),
        (["show", "trees.csv", "--labels", "species", "--partition", "column"], "column must name"),
        (["show", "trees.csv", "--labels", "species", "--clients", "9"], "from 1 to 2 examples"),
        (["show", "femnist"], "task 'femnist' needs data in"),
        (["show", "minst"], "task must be femnist"),
        (["show", "trees.csv", "--out", "classes.xyz"], "must end in .png, .svg, .pdf; given 'cla"),
        (["show", "shakespeare-standin", "--samples", "a.png"], "samples are drawn of images"),
        (["fetch", "mnist"], "'mnist' is not one of 'femnist', 'shakespeare'"),
    ],
)
def test_bad_requests_are_one_line_and_exit_code_2(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    (tmp_path / "my.npz").write_bytes(b"PK no zip")
    (tmp_path / "trees.csv").write_text("species\noak\nelm\n")
    (tmp_path / "trees.parquet").write_text("PAR1")
    done = asyncfeded("data", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
    assert not (tmp_path / "classes.png").exists()


def lose_a_shard(folder: Path) -> None:
    (folder / "femnist" / "test" / "all_data_1_niid_05_keep_0_test_9.json").unlink()


def break_json(folder: Path) -> None:
    path = folder / "femnist" / "train" / "all_data_0_niid_05_keep_0_train_9.json"
    path.write_text(path.read_text()[:-100])


def spoil_a_label(folder: Path) -> None:
    path = folder / "femnist" / "train" / "all_data_0_niid_05_keep_0_train_9.json"
    content = json.loads(path.read_text())
    content["user_data"]["f0001"]["y"][3] = 99
    path.write_text(json.dumps(content))


def empty_a_role(folder: Path) -> None:
    (folder / "shakespeare" / "roles.json").write_text('{"A": {"text": ""}}')


@pytest.mark.parametrize(
    ("task", "spoil", "message"),
    [
        ("femnist", lose_a_shard, "all_data_1_niid_05_keep_0_test_9.json' is missing"),
        ("femnist", break_json, "all_data_0_niid_05_keep_0_train_9.json' is not json"),
        ("femnist", spoil_a_label, "user 'f0001': labels must be from 0 to 61; sample 3 has 99"),
        ("shakespeare", empty_a_role, "role 'A': its text is empty: remove the role"),
    ],
)
def test_spoilt_data_end_a_run_before_anything_is_written(
    task: str, spoil: Callable[[Path], None], message: str, data_dir: Path, tmp_path: Path
) -> None:
    spoil(data_dir)
    out = tmp_path / "out"
    done = asyncfeded("run", "--task", task, "--clients", "3", "--out", out)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
    assert not out.exists()


def test_brackets_and_dollars_in_names_are_just_characters(tmp_path: Path) -> None:
    (tmp_path / "a[bold].csv").write_text("y\n$10k-$20k\n$20k_$30k\n漢\n")
    arguments = ["a[bold].csv", "--clients", "2", "--out", "x[b].png"]
    done = asyncfeded("data", "show", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "a[bold].csv, iid: 2 clients, 3 examples" in done.stdout
    assert "plot: x[b].png" in done.stdout
    listed = asyncfeded("data", "list", "--data-dir", tmp_path / "d[/old]")
    assert (listed.returncode, listed.stderr) == (0, "")


@pytest.mark.slow
def test_fetching_without_network_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In a process of its own, as the hub's library reads the environment when it is imported.
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    done = asyncfeded_process("data", "fetch", "femnist", "--data-dir", tmp_path / "there")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "femnist cannot be fetched from flwrlabs/femnist" in done.stderr
    assert "put LEAF's json (train/ and test/) into" in done.stderr
    assert not (tmp_path / "there").exists()
