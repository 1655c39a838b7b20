"""What makes a user wait before a run begins, so that it can be said beforehand."""

from asyncfeded.core import kernels
from asyncfeded.experiment.run import ResolvedRun


def waits_of(run: ResolvedRun) -> list[str]:
    """A line for each thing that takes seconds before the first event."""
    settings, lines = run.settings, []
    if "ray" in (settings.on, settings.workers_on):
        address = settings.ray_address
        whose = "a Ray of our own" if address is None else f"the Ray at {address}"
        lines.append(f"starting processes on {whose}, which takes some seconds …")
    if not _is_compiled(run):
        lines.append("compiling, once per installation: up to a minute …")
    return lines


def _is_compiled(run: ResolvedRun) -> bool:
    """Whether the loops of the server and of training were compiled before."""
    if not kernels.is_on_disk(kernels.block_squares_and_apart):
        return False
    if run.training.kernel != "compiled":
        return True
    from asyncfeded.learning import dense

    return kernels.is_on_disk(dense.train_passes)
