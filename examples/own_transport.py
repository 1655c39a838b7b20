"""The server alone, behind a transport of your own: here HTTP, with the standard library.

The server needs no clock, no torch and no data. Tasks and updates are a vector and a few numbers.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.request import urlopen

import numpy as np

from asyncfeded import ClientUpdate, Server, rules

server = Server(np.zeros(3, np.float32), rule=rules.asyncfeded(initial_epochs=4))


class Messages(BaseHTTPRequestHandler):
    """GET /client joins and answers with a task; POST /client folds in an update."""

    def do_GET(self):
        self.answer(server.join(self.path[1:]))

    def do_POST(self):
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        delta = np.array(sent.pop("delta"), np.float32)
        receipt = server.receive(ClientUpdate(self.path[1:], delta=delta, **sent))
        print(f"{self.path[1:]}: {receipt.reason or 'accepted'}, version {receipt.version}")
        self.answer(receipt.next_task)

    def answer(self, task):
        parameters = task.parameters.tolist()
        text = json.dumps({**task._asdict(), "parameters": parameters}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        """Print no line per request."""


def train(task, target):
    """A client's training: gradient steps towards its own target."""
    x = start = np.array(task["parameters"], np.float32)
    for _ in range(task["epochs"]):
        x = x - 0.2 * (x - target)
    update = {"version": task["version"], "round": task["round"], "epochs": task["epochs"]}
    return {**update, "num_examples": 10, "delta": (x - start).tolist()}


with HTTPServer(("127.0.0.1", 0), Messages) as http:
    threading.Thread(target=http.serve_forever, daemon=True).start()
    place = f"http://127.0.0.1:{http.server_port}"
    targets = {"ada": np.array([1, 2, 3]), "bob": np.array([3, 2, 1]), "eve": np.full(3, np.nan)}
    tasks = {name: json.load(urlopen(f"{place}/{name}")) for name in targets}
    for name in ("ada", "bob", "eve", "ada", "bob", "bob", "ada"):
        update = json.dumps(train(tasks[name], targets[name])).encode()
        tasks[name] = json.load(urlopen(f"{place}/{name}", data=update))
    http.shutdown()
print("model", server.parameters.round(2), "refused", dict(server.refused))
