"""One stack in real containers for all files of this folder that ask for it; see running_stack.py.

Each test leaves two idle workers or makes them itself. The images are built from the tree, the data is thrown away
before and after.
"""

from collections.abc import Iterator

import pytest

from tests.e2e.running_stack import RunningStack, alone_on_this_machine


@pytest.fixture(scope="package")
def stack() -> Iterator[RunningStack]:
    stack = RunningStack()
    with alone_on_this_machine():
        stack.remove()  # what a killed run left
        try:
            stack.compose("build", "--quiet")
            stack.up(workers=2)
            stack.use_short_lease()
            yield stack
            print(stack.compose("logs", "--no-color", "--tail", "60"))  # pytest shows it when a test failed
        finally:
            stack.remove()


@pytest.fixture(scope="package")
def transcript(stack: RunningStack) -> str:
    """The text of the sample from an uninterrupted run."""
    return str(stack.wait_for(stack.enqueue_sample("reference.mp3"), "completed")["result"]["text"])


@pytest.fixture
def two_workers(stack: RunningStack) -> RunningStack:
    stack.start_missing_workers()
    return stack
