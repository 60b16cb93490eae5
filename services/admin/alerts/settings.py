"""Settings of the alerts: by which channels a person is told. Without any, alerts are kept and told to nobody."""

from dataclasses import dataclass

from services.admin.delivery.settings import url_problem
from services.admin.settings import listed
from sidelinja_jobs.errors import SettingsError
from sidelinja_jobs.settings import setting


@dataclass(frozen=True)
class AlertSettings:
    """What the forwarder reads beside its own settings."""

    webhook_url: str | None = setting(
        "ALERT_WEBHOOK_URL", default=None, secret=True, empty_file_is_unset=True, help="receiver of the alerts"
    )
    webhook_secret: str | None = setting(
        "ALERT_WEBHOOK_SECRET", default=None, secret=True, empty_file_is_unset=True, help="whsec_… signs them"
    )
    mail_to: str = setting("ALERT_MAIL_TO", default="", help="addresses, comma between")
    mail_from: str = setting("ALERT_MAIL_FROM", default="", help="sender")
    smtp_host: str = setting("ALERT_SMTP_HOST", default="", help="server that takes the mail")
    smtp_port: int = setting("ALERT_SMTP_PORT", default=587, minimum=1, maximum=65535)
    smtp_security: str = setting("ALERT_SMTP_SECURITY", default="starttls", choices=("starttls", "tls", "none"))
    smtp_user: str = setting("ALERT_SMTP_USER", default="", help="login at that server; empty = none")
    smtp_password: str | None = setting(
        "ALERT_SMTP_PASSWORD", default=None, secret=True, empty_file_is_unset=True, help="its password"
    )
    repeat_hours: float = setting(
        "ALERT_REPEAT_HOURS", default=24.0, minimum=0.001, maximum=8760, help="told again while it still fires"
    )

    @property
    def recipients(self) -> list[str]:
        return listed(self.mail_to)


def check_alert_settings(settings: AlertSettings, *, allow_http: bool) -> None:
    """What no single setting can tell.

    Raises:
        SettingsError: naming every problem.
    """
    problems = []
    if settings.webhook_url is not None:
        problems.append(url_problem("ALERT_WEBHOOK_URL", settings.webhook_url, allow_http))
    if settings.mail_to:
        missing = [
            name
            for name, value in (("ALERT_MAIL_FROM", settings.mail_from), ("ALERT_SMTP_HOST", settings.smtp_host))
            if not value
        ]
        if missing:
            problems.append(f"ALERT_MAIL_TO is set and {' and '.join(missing)} not: who sends, and by which server")
        wrong = [address for address in [*settings.recipients, settings.mail_from] if "@" not in address]
        if wrong:
            problems.append(f"ALERT_MAIL_TO and ALERT_MAIL_FROM hold {', '.join(map(repr, wrong))}, expected NAME@HOST")
    if found := [problem for problem in problems if problem]:
        raise SettingsError("settings: " + "; ".join(found))
