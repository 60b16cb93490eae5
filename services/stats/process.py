"""Settings of the worker's process that are not of its environment."""

import gc

# Lines, windows and their keys hold no cycles, yet each batch makes enough of them to start a full collection every few
# batches, which then walks all that is remembered: a tenth of the time (make bench-stats).
_ALLOCATIONS = 200_000


def tune_garbage_collection() -> None:
    """Lets cycles be looked for a hundredth as often; what was loaded until now is not looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS, 20, 100)
