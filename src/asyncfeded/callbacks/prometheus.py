"""A run as Prometheus sees it."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Self

from asyncfeded.callbacks.listening import check_listening, listening_errors, url_of
from asyncfeded.core.errors import SettingError
from asyncfeded.runtime.control import Run
from asyncfeded.runtime.events import Event

if TYPE_CHECKING:
    from threading import Thread
    from wsgiref.simple_server import WSGIServer

    from asyncfeded.callbacks.prometheus_metrics import Metrics

PORT = 9464
LOOPBACK = "127.0.0.1"


class Prometheus:
    """Serve the figures of a run over HTTP, as Prometheus reads them.

        federate(model, datasets, world=Ray(), callbacks=[Prometheus()])

    While the run goes on they are at `url`, http://127.0.0.1:9464/metrics: updates, refusals and
    lost rounds by reason, staleness, K, the last evaluation and more. There is no password and no
    encryption. So only this machine can read them, unless another `host` is given: 0.0.0.0 is for
    every machine that reaches this one. Port 0 takes any that is free; `url` then says which.

    Needs the extra `serve`: `pip install 'asyncfeded[serve]'`.
    """

    def __init__(self, port: int = PORT, host: str = LOOPBACK) -> None:
        if find_spec("prometheus_client") is None:
            raise SettingError(
                "Prometheus needs prometheus_client, which is not installed: "
                "pip install 'asyncfeded[serve]'"
            )
        check_listening(host, port)
        self._port = port
        self._host = host
        self._metrics: Metrics | None = None
        self._server: WSGIServer | None = None
        self._thread: Thread | None = None

    @property
    def url(self) -> str | None:
        """Where the figures are; None before the run and after it."""
        if self._server is None:
            return None
        return f"{url_of(self._host, self._server.server_port)}/metrics"

    def __enter__(self) -> Self:
        from prometheus_client import start_http_server

        from asyncfeded.callbacks.prometheus_metrics import Metrics

        self._metrics = Metrics()
        with listening_errors(self._host, self._port):
            self._server, self._thread = start_http_server(
                self._port, self._host, self._metrics.registry
            )
        return self

    def __call__(self, event: Event, run: Run) -> None:
        """Note an event."""
        if self._metrics is None:
            raise SettingError("Prometheus must be used in a with block")
        self._metrics.note(event, run)

    def __exit__(self, *_: object) -> None:
        server, thread = self._server, self._thread
        self._metrics = self._server = self._thread = None
        assert server is not None
        assert thread is not None
        server.shutdown()
        server.server_close()
        thread.join()
