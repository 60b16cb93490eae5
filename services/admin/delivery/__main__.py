"""`python -m services.admin.delivery`: sends events to the sinks that its settings name, and alerts to people.

Until SIGTERM; the main thread waits for that and touches the health file. Without a sink no event is sent, and it says
so; alerts are kept all the same, and the container stays, as one that ends would be started over and over again.
"""

import os
import signal
import sys

from services.admin.alerts.settings import AlertSettings, check_alert_settings
from services.admin.delivery.settings import DeliverySettings, check_settings
from services.admin.delivery.team import Team
from sidelinja_jobs.errors import SettingsError
from sidelinja_jobs.log import configure_logging, get_logger
from sidelinja_jobs.settings import load_settings

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
        alerts = load_settings(AlertSettings)
        check_alert_settings(alerts, allow_http=settings.allow_http)
        return _work(settings, alerts)
    except SettingsError as error:
        log.error("cannot start", problem=str(error))
        return os.EX_CONFIG


def _work(settings: DeliverySettings, alerts: AlertSettings) -> int:
    if not settings.has_sink:
        log.info("no sink is set, no event is sent: see DELIVERY_WEBHOOK_URL and DELIVERY_SPACETIMEDB_URL")
    with Team(settings, alerts) as team:
        while not signal.sigtimedwait(STOP_SIGNALS, HEALTH_SECONDS):
            if team.failure is not None:
                return os.EX_CONFIG if team.is_refused else os.EX_SOFTWARE
            if team.is_well:
                settings.health_file.touch()
        log.info("stop requested")
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # a thread that looks a name up, or is inside the TLS library, must not keep the process
