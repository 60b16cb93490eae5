"""`python -m services.admin.delivery`: sends events to the sinks that its settings name, until SIGTERM.

A thread for each sink; the main thread waits for signals and touches the health file. Without a sink there is nothing
to do: it says so and stays, since a container that ends would be started over and over again.
"""

import os
import signal
import sys

from services.admin.delivery.settings import DeliverySettings, check_settings
from sidelinja_jobs.errors import SettingsError
from sidelinja_jobs.log import configure_logging, get_logger
from sidelinja_jobs.settings import load_settings

EXIT_CONFIG = 78  # settings, login or schema are wrong (sysexits.h EX_CONFIG)
EXIT_INTERNAL = 70  # EX_SOFTWARE
HEALTH_SECONDS = 1.0
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

log = get_logger()


def main() -> int:
    """Returns the exit code."""
    # Blocked in all threads and waited for in this one, so that no handler can run in the middle of anything.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    configure_logging()
    try:
        settings = load_settings(DeliverySettings)
        configure_logging(settings.log_format, settings.log_level)
        check_settings(settings)
        return _forward(settings) if settings.has_sink else _idle(settings)
    except SettingsError as error:
        log.error("cannot start", problem=str(error))
        return EXIT_CONFIG


def _idle(settings: DeliverySettings) -> int:
    log.info("no sink is set, nothing to deliver: see DELIVERY_WEBHOOK_URL and DELIVERY_SPACETIMEDB_URL")
    while not signal.sigtimedwait(STOP_SIGNALS, HEALTH_SECONDS):
        settings.health_file.touch()
    return 0


def _forward(settings: DeliverySettings) -> int:
    # Only here, so that one without a sink carries no HTTP client.
    from services.admin.delivery.team import Team

    with Team(settings) as team:
        while not signal.sigtimedwait(STOP_SIGNALS, HEALTH_SECONDS):
            if team.failure is not None:
                return EXIT_CONFIG if team.is_refused else EXIT_INTERNAL
            if team.is_well:
                settings.health_file.touch()
        log.info("stop requested")
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # a thread that looks a name up, or is inside the TLS library, must not keep the process
