"""Receivers of events that do not take them, made to happen in the running stack. Leaving the context takes the cause
away."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tests.e2e.alert_watch import AlertWatch
from tests.e2e.by_hand import cancel, give, insert
from tests.services.alert_receivers import SECRET, Posts

UNWORKED = "transcribe_wisper"  # a misspelled type


@contextmanager
def late_receiver(watch: AlertWatch, after: ExitStack) -> Iterator[None]:
    with receiver_of_events(watch, after, status=500):
        yield


@contextmanager
def gone_receiver(watch: AlertWatch, after: ExitStack) -> Iterator[None]:
    with receiver_of_events(watch, after, status=410):
        yield
    watch.stack.compose("run", "--rm", "-T", "jobs", "deliveries", "enable", "webhook")


@contextmanager
def receiver_of_events(watch: AlertWatch, after: ExitStack, status: int) -> Iterator[None]:
    """Events go to a receiver that does not take them, and then does."""
    stack = watch.stack
    events = Posts(stack.host_address("egress"))
    events.status = status
    after.callback(events.close)

    def restart_delivery() -> None:
        stack.compose("up", "--detach", "--no-deps", "--force-recreate", "--wait", "delivery")
        watch.wait_for_a_listener()

    def forget() -> None:
        give(stack, webhook_url="", webhook_secret="")
        restart_delivery()
        stack.compose("run", "--rm", "-T", "jobs", "deliveries", "forget", "webhook")

    after.callback(forget)
    give(stack, webhook_url=events.url, webhook_secret=SECRET)
    restart_delivery()
    insert(stack, UNWORKED, "{}")
    cancel(stack, UNWORKED)
    yield
    events.status = 204
