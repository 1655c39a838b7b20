"""All targets by name."""

import json

from asyncfeded.experiment.begun import make_begun
from fuzz import file_targets as files
from fuzz import flower_targets, journal_target, state_targets
from fuzz.file_targets import one
from fuzz.mutation import mutated_header, mutated_tree
from fuzz.target import Target

TARGETS = {
    "codec": Target(state_targets.read_tree, state_targets.trees, mutated_tree),
    "signals": Target(state_targets.read_signal, state_targets.signals, mutated_tree),
    "states": Target(state_targets.read_state, state_targets.states, mutated_tree),
    "journal": Target(journal_target.read_changed, journal_target.changes),
    "models": Target(files.read_model, files.models, mutated_header),
    "data": Target(files.read_data, files.data_files, mutated_header),
    "writers": Target(files.read_writers, files.writers, mutated_header),
    "times": Target(files.read_times, one(files.CSV_TIMES)),
    "daily-times": Target(files.read_daily_times, one(files.CSV_TIMES)),
    "traces": Target(files.read_traces, files.traces),
    "hangs": Target(files.read_recorded_hangs, one(files.CSV_HANGS)),
    "flower": Target(flower_targets.read_array, flower_targets.arrays),
    "npz": Target(files.read_npz, files.npzs),
    "labels": Target(files.read_labels, one(b"x,y\n1,2\n3,cat\n")),
    "leaf": Target(files.read_leaf, files.leaf_shards),
    "leaf-text": Target(files.read_leaf_text, files.leaf_texts),
    "roles": Target(files.read_role_texts, one(b'{"A": {"play": "P", "text": "To be"}}')),
    "settings": Target(
        files.read_settings,
        one(b'task = "synthetic-1-1"\nseconds = 10.5\nlam = 1\nwidths = [16, 32]\n'),
    ),
    "begun": Target(
        files.read_begun_run,
        one(json.dumps(make_begun("run", {"seconds": 1}).model_dump(mode="json")).encode()),
    ),
    "results": Target(files.read_results, files.results),
    "stored-runs": Target(
        files.read_stored_run, one(b'{"key": "0123456789abcdef", "settings": {}, "curve": [1.5]}')
    ),
}
