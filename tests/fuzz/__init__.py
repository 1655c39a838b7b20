"""Bytes that nobody of ours has written: a clear error, or a value that is written again equal.

A *target* is a reader of outside bytes with what must hold of it. hypothesis tries every target for
a moment in `make test`; a fuzzer guided by coverage tries them for as long as there is time. From
the folder tests, with the extra `fuzz`:

    python -m fuzz --seconds 600           all targets, one after the other
    python -m fuzz signals --seconds 60    one of them
    python -m fuzz signals --input FILE    one input again
"""
