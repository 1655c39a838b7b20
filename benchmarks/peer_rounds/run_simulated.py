"""A tool that simulates asynchronous training, on clients of different speeds."""

from typing import get_args

from peer_rounds.protocol import Rounds, choose_threads, claim_stdout, parser, serve, unavailable
from peer_rounds.simulated import Rule, Tool, UnavailableError, begin, race_work
from peer_rounds.workload import CLIENTS


def main() -> None:
    options = parser()
    options.add_argument("--tool", choices=get_args(Tool), required=True)
    options.add_argument("--rule", choices=get_args(Rule), required=True)
    options.add_argument("--workers", type=int, default=1)
    options.add_argument("--compiled", action="store_true")
    arguments = options.parse_args()
    answers = claim_stdout()
    work = race_work(arguments.workload, arguments.rule, arguments.workers, arguments.compiled)
    try:
        rounds: Rounds = begin(arguments.tool, work).updates
        if arguments.tool == "engine":
            serve(answers, rounds, "1 thread each", lead_in=CLIENTS)
        else:
            serve(answers, rounds, choose_threads(rounds))
    except UnavailableError as error:
        unavailable(answers, str(error))


if __name__ == "__main__":
    main()
