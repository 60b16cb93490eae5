"""What a batch comes to for its sink."""

from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from services.admin.delivery.batch import DOWN_AFTER_JOBS, Batch
from services.admin.delivery.forwarder import Forwarder


def test_a_batch_of_which_nothing_could_be_sent_makes_no_new_pause() -> None:
    """Its receiver seemed to be down before, and all its events wait for earlier ones of their jobs."""
    failing = frozenset(uuid4() for _ in range(DOWN_AFTER_JOBS))
    sink: Any = SimpleNamespace(name="webhook")
    row: Any = SimpleNamespace()
    forwarder = Forwarder.__new__(Forwarder)
    forwarder._pauses = 1
    batch = Batch(sink, uuid4(), [], failing)
    assert batch.is_down

    entry = forwarder._record(row, [], batch, has_recovered=False)

    assert (entry.wait_seconds, entry.disable_reason, forwarder._pauses) == (None, None, 1)
