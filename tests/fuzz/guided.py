"""A fuzzer guided by coverage, in a process of its own: atheris, from the extra `fuzz`.

python -m fuzz.guided TARGET --seconds 60 --corpus FOLDER
"""

import sys
from argparse import ArgumentParser
from mmap import mmap
from pathlib import Path
from random import Random

import atheris

LONGEST_INPUT = 8192
MOST_MEMORY_MB = 2048
SLOWEST_SECONDS = 30
NOT_INSTRUMENTED = ["asyncfeded.core.kernels", "asyncfeded.core.sketch"]
"""numba compiles these, and knows nothing of counters."""
WORDS = (
    *('"$array"', '"$float"', '"$map"', '"$dict"', '"data_offsets"', '"shape"', '"dtype"'),
    *('"__metadata__"', '"F32"', '"arriving"', '"ready_time"', '"messages"', '"user_data"'),
)


def main() -> None:
    """Fuzz one target until the time is over, or an input is found that it does not stand."""
    parser = ArgumentParser(prog="python -m fuzz.guided")
    parser.add_argument("target")
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("--corpus", type=Path, required=True)
    options = parser.parse_args()
    with atheris.instrument_imports(include=["asyncfeded"], exclude=NOT_INSTRUMENTED):
        from fuzz.targets import TARGETS
    from fuzz.target import accepts, counter_of

    target = TARGETS[options.target]
    corpus: Path = options.corpus
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
        assert len(seed) <= LONGEST_INPUT
    words = corpus.with_name(f"{options.target}.words")
    words.write_text("".join(f'"{word}"\n' for word in (w.replace('"', '\\"') for w in WORDS)))

    def changed(content: bytes, longest: int, number: int) -> bytes:
        """Half of the time what the input holds is changed, otherwise its bytes."""
        random = Random(number)
        if random.random() < 0.5 and target.mutated is not None:
            other = target.mutated(content, random)
            if len(other) <= longest:
                return other
        return bytes(atheris.Mutate(content, longest))

    arguments = [
        sys.argv[0],
        f"-max_total_time={options.seconds}",
        f"-max_len={LONGEST_INPUT}",
        f"-rss_limit_mb={MOST_MEMORY_MB}",
        f"-timeout={SLOWEST_SECONDS}",
        f"-dict={words}",
        f"-artifact_prefix={corpus.parent}/{options.target}-found-",
        "-print_final_stats=1",
        str(corpus),
    ]

    refused = counter(counter_of(corpus))

    def read(content: bytes) -> None:  # what is returned would say whether to keep the input
        if not accepts(target, content):
            refused[0] += 1

    extra = {"custom_mutator": changed} if target.mutated is not None else {}
    atheris.Setup(arguments, read, **extra)
    atheris.Fuzz()


def counter(path: Path) -> memoryview:
    """One number in a file, which is there however this process ends."""
    path.write_bytes(bytes(8))
    with path.open("r+b") as file:
        return memoryview(mmap(file.fileno(), 8)).cast("Q")


if __name__ == "__main__":
    main()
