"""The admin view: `python -m services.admin`. Exit codes are those of the workers: 78 setup, 69 no database."""

import asyncio
import contextlib
import os
import sys
import time

import psycopg
from prometheus_client import REGISTRY

from services.admin.access.passwords import hash_password, verifies
from services.admin.app import create_app
from services.admin.database import Database
from services.admin.gauges import QueueGauges
from services.admin.server import AdminServer
from services.admin.settings import AdminSettings, read_settings
from sidelinja_jobs.database import check_schema, connect
from sidelinja_jobs.errors import JobQueueError, SettingsError
from sidelinja_jobs.log import configure_logging, get_logger
from sidelinja_jobs.metrics import serve_metrics
from sidelinja_jobs.version import VERSION
from sidelinja_jobs.worker import START_SECONDS

ADMIN_ACCOUNT = "admin"


def main() -> int:
    """Runs until SIGTERM; returns the exit code of the process."""
    try:
        settings = read_settings()
    except SettingsError as error:
        configure_logging()
        get_logger().error("cannot start", problem=str(error))
        return os.EX_CONFIG
    configure_logging(settings.log_format, settings.log_level)
    log = get_logger(service="admin")
    try:
        show_gauges(settings)  # first: one that waits for its database is seen to wait
        wait_for_database(settings)
        asyncio.run(serve(settings))
    except JobQueueError as error:
        log.error("cannot start", problem=str(error))
        return os.EX_CONFIG
    except psycopg.OperationalError as error:
        log.error("database unreachable", problem=str(error).strip())
        return os.EX_UNAVAILABLE
    except SystemExit:  # uvicorn's word for a port that is taken, which it has logged
        log.error("cannot listen", host=settings.host, port=settings.port)
        return os.EX_CONFIG
    log.info("admin view stopped")
    return 0


def show_gauges(settings: AdminSettings) -> None:
    """Serves the queue's gauges at METRICS_PORT.

    Raises:
        SettingsError: the port is taken.
    """
    if serve_metrics(settings.metrics_port, settings.metrics_host) is not None:
        REGISTRY.register(QueueGauges(settings, settings.media_root))


def wait_for_database(settings: AdminSettings) -> None:
    """Returns when the database answers and has our schema; waits as long as a worker does.

    Raises:
        SchemaError, SettingsError: waiting does not help.
        psycopg.OperationalError: it stayed away.
    """
    give_up_at = time.monotonic() + START_SECONDS
    while True:
        try:
            with contextlib.closing(connect(settings, name="jobbko admin start")) as connection:
                return check_schema(connection)
        except psycopg.OperationalError as error:
            if time.monotonic() >= give_up_at:
                raise
            get_logger().warning("database not reachable yet", error=str(error).strip())
            time.sleep(1)


async def serve(settings: AdminSettings) -> None:
    """Serves until told to stop.

    Raises:
        SettingsError: anybody could get in.
    """
    database = Database(settings)
    async with database.opened():
        is_open = not await has_credentials(settings, database)
        server = AdminServer(create_app(settings, database, is_open=is_open), settings)
        get_logger().info(
            "admin view started", version=VERSION, host=settings.host, port=settings.port, is_open=is_open
        )
        await server.serve_with_health()


async def has_credentials(settings: AdminSettings, database: Database) -> bool:
    """Whether anybody has to log in. The account `admin` gets the password of the settings first.

    Raises:
        SettingsError: nobody would have to, and the address is not loopback.
    """
    if settings.admin_password:
        await ensure_admin(settings.admin_password, database)
    if settings.proxy_header or await database.fetch_value("has_accounts"):
        return True
    if not settings.is_on_loopback:
        raise SettingsError(
            f"anybody could get in: there is no account with a password, no ADMIN_PROXY_HEADER, and ADMIN_HOST is "
            f"{settings.host}. Next: set ADMIN_PASSWORD or ADMIN_PASSWORD_FILE"
        )
    return False


async def ensure_admin(password: str, database: Database) -> None:
    """Makes the account `admin` if need be. One that is there gets a changed password; its role is left alone."""
    known = await database.fetch_one("find_account", name=ADMIN_ACCOUNT)
    if known is not None and verifies(password, known["password_hash"]):
        return
    exists = await database.fetch_value("account_exists", name=ADMIN_ACCOUNT)
    if exists and known is None:
        return  # disabled by a person: stays so
    async with database.acting_as("ADMIN_PASSWORD") as session:
        await session.fetch_one(
            "put_account", name=ADMIN_ACCOUNT, role=None if exists else "operator",
            password_hash=hash_password(password), disabled=None,
        )  # fmt: skip
    get_logger().info("account ensured", account=ADMIN_ACCOUNT)


if __name__ == "__main__":
    sys.exit(main())
