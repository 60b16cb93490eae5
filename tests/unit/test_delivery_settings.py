"""Settings of the forwarder and of its alerts: what is allowed, and what is said of what is not."""

import pytest

from services.admin.alerts.settings import AlertSettings, check_alert_settings
from services.admin.delivery.settings import DeliverySettings, check_settings, is_near, origin
from sidelinja_jobs.errors import SettingsError
from sidelinja_jobs.settings import load_settings

BASE = {"DATABASE_URL": "postgresql://x", "DELIVERY_WEBHOOK_SECRET": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}


def check(**environ: str) -> None:
    check_settings(load_settings(DeliverySettings, BASE | environ))


@pytest.mark.parametrize(
    "url",
    ["https://example.net/hook?key=1", "http://127.0.0.1:8080/", "http://[::1]/", "http://192.168.1.20/x",
     "http://suite:8000/hooks", "http://nas.lan/", "http://my.internal/"],
)  # fmt: skip
def test_https_anywhere_and_plain_http_nearby(url: str) -> None:
    check(DELIVERY_WEBHOOK_URL=url)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://example.net/", "plain http to example.net"),
        ("http://8.8.8.8/", "plain http to 8.8.8.8"),
        ("ftp://example.net/", "no URL"),
        ("file:///etc/passwd", "no URL"),
        ("https://", "no URL"),
        ("https://example.net:port/", "no URL"),
        ("https://exa mple.net/", "no URL"),
        ("https://kari:hemmelig@example.net/", "holds a user name"),
    ],
)
def test_any_other_address_is_refused_and_not_repeated(url: str, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem) as caught:
        check(DELIVERY_WEBHOOK_URL=url)

    assert "hemmelig" not in str(caught.value)


def test_plain_http_to_anywhere_has_to_be_asked_for() -> None:
    check(DELIVERY_WEBHOOK_URL="http://example.net/", DELIVERY_ALLOW_HTTP="true")


def test_a_sink_needs_what_tells_the_receiver_who_calls() -> None:
    with pytest.raises(SettingsError, match="DELIVERY_WEBHOOK_SECRET is not set"):
        check(DELIVERY_WEBHOOK_URL="https://example.net/", DELIVERY_WEBHOOK_SECRET="")
    with pytest.raises(SettingsError, match=r"DELIVERY_SPACETIMEDB_DATABASE is not set.*DELIVERY_SPACETIMEDB_TOKEN"):
        check(DELIVERY_SPACETIMEDB_URL="https://example.net/")


def test_without_a_url_there_is_no_sink() -> None:
    settings = load_settings(DeliverySettings, BASE)
    check_settings(settings)

    assert not settings.has_sink


def test_only_the_origin_of_an_address_is_shown() -> None:
    assert origin("https://hooks.example:8443/T000/secret?key=1") == "https://hooks.example:8443"
    assert not is_near("example.net")


def test_settings_of_alerts_that_cannot_work_are_named_together() -> None:
    environ = {"ALERT_WEBHOOK_URL": "http://example.no/x", "ALERT_MAIL_TO": "nobody"}
    with pytest.raises(SettingsError) as caught:
        check_alert_settings(load_settings(AlertSettings, environ), allow_http=False)

    for word in ("ALERT_WEBHOOK_URL is plain http", "ALERT_MAIL_FROM and ALERT_SMTP_HOST", "'nobody'"):
        assert word in str(caught.value)
