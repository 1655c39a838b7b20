"""A plain sequential PyTorch loop, with AsyncFedED's server in a few lines."""

from itertools import cycle

import torch
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from peer_rounds.protocol import Rounds, claim_stdout, parser, serve
from peer_rounds.workload import CLIENTS, client_data, make_module, train_round

LAMBDA = EPSILON = 5.0


def plain_loop(workload: str) -> Rounds:
    """Clients take turns; each trains from the version that it was given at its last turn."""
    module = make_module(workload)
    parameters = list(module.parameters())
    current = parameters_to_vector(parameters).detach()
    bases = [current] * CLIENTS
    turns = cycle(range(CLIENTS))

    def rounds(count: int) -> int:
        nonlocal current
        for _ in range(count):
            client = next(turns)
            base = bases[client]
            # A copy, because the parameters become views into what is loaded.
            vector_to_parameters(base.clone(), parameters)
            train_round(module, *client_data(workload, client))
            with torch.no_grad():
                delta = parameters_to_vector(parameters) - base
                staleness = torch.linalg.vector_norm(current - base)
                staleness = staleness / torch.linalg.vector_norm(delta)
                current = current + LAMBDA / (staleness.item() + EPSILON) * delta
            bases[client] = current
        return count

    return rounds


def main() -> None:
    options = parser()
    options.add_argument("--threads", type=int, required=True)
    arguments = options.parse_args()
    answers = claim_stdout()
    torch.set_num_threads(arguments.threads)
    serve(answers, plain_loop(arguments.workload), note="")


if __name__ == "__main__":
    main()
