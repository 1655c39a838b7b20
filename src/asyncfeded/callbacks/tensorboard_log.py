"""A file as TensorBoard reads it, made with TensorBoard's own records."""

import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.hparams import metadata as hparams
from tensorboard.plugins.hparams.api_pb2 import Status
from tensorboard.plugins.hparams.plugin_data_pb2 import (
    HParamsPluginData,
    SessionEndInfo,
    SessionStartInfo,
)
from tensorboard.plugins.text import metadata as texts
from tensorboard.summary.writer.record_writer import RecordWriter
from tensorboard.util.tensor_util import make_tensor_proto

from asyncfeded.callbacks.tracker import Ending, Setting
from asyncfeded.core.errors import FileError
from asyncfeded.runtime.saved import Saved

FORMAT = "brain.Event:2"


class TensorBoardLog:
    """A new file in a folder; every call writes its record out before it returns.

    It writes without a thread, unlike TensorBoard's EventFileWriter: a thread would be running
    while workers are forked.
    """

    def __init__(self, folder: Path, resumed: Saved | None = None) -> None:
        self._folder = folder
        self._began = time.time() if resumed is None else float(resumed["began"])
        self._last = (0.0, 0) if resumed is None else (resumed["seconds"], resumed["version"])
        name = f"events.out.tfevents.{time.time():.6f}.{socket.gethostname()}.{os.getpid()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._records = RecordWriter((folder / name).open("xb"))
        except (OSError, ValueError) as error:
            raise self._unwritable(error) from None
        self._write(file_version=FORMAT)
        # TensorBoard then drops what an earlier run has left in this folder or, where the run goes
        # on, the points that were written after it was saved.
        self._write(session_log=SessionLog(status=SessionLog.START))

    def write_figures(self, seconds: float, version: int, figures: Mapping[str, float]) -> None:
        """Add a point to the curve of each figure."""
        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in figures.items()]
        self._last = (seconds, version)
        self._write(summary=Summary(value=values))

    def write_settings(self, rule: str, settings: Mapping[str, Setting]) -> None:
        """Say what the run is made with."""
        start = SessionStartInfo(start_time_secs=self._began)
        for name, value in {**settings, "rule": rule}.items():
            if isinstance(value, bool):
                start.hparams[name].bool_value = value
            elif isinstance(value, str):
                start.hparams[name].string_value = value
            else:
                start.hparams[name].number_value = value
        data = HParamsPluginData(session_start_info=start)
        self._write(summary=_of_hparams(hparams.SESSION_START_INFO_TAG, data))

    def write_end(self, ending: Ending) -> None:
        """Say how the run has ended."""
        failed = ending.how in ("interrupted", "failed")
        status = Status.STATUS_FAILURE if failed else Status.STATUS_SUCCESS
        end = SessionEndInfo(status=status, end_time_secs=time.time())
        data = HParamsPluginData(session_end_info=end)
        self._write(summary=_of_hparams(hparams.SESSION_END_INFO_TAG, data))
        self._write(summary=_text("run/ended", str(ending)))

    def state(self) -> Saved:
        """When the run began, and where its last point is."""
        seconds, version = self._last
        return {"began": self._began, "seconds": seconds, "version": version}

    def close(self) -> None:
        """Close the file."""
        try:
            self._records.close()
        except OSError as error:
            raise self._unwritable(error) from None

    def _write(self, **what: Any) -> None:
        seconds, version = self._last
        record = Event(wall_time=self._began + seconds, step=version, **what)
        try:
            self._records.write(record.SerializeToString())
            self._records.flush()
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: Exception) -> FileError:
        reason = getattr(error, "strerror", None) or error
        return FileError(f"tensorboard {str(self._folder)!r} cannot be written: {reason}")


def _of_hparams(tag: str, data: HParamsPluginData) -> Summary:
    about = hparams.create_summary_metadata(data)
    return Summary(value=[Summary.Value(tag=tag, metadata=about, tensor=hparams.NULL_TENSOR)])


def _text(tag: str, text: str) -> Summary:
    about = texts.create_summary_metadata(display_name=tag, description="")
    tensor = make_tensor_proto(text.encode())
    return Summary(value=[Summary.Value(tag=tag, metadata=about, tensor=tensor)])
