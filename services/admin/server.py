"""The HTTP server, and its signs of life."""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from services.admin.database import TROUBLE
from services.admin.settings import AdminSettings

HEALTH_SECONDS = 15.0
GRACE_SECONDS = 5  # for requests that are under way at SIGTERM


class AdminServer(uvicorn.Server):
    """Ends the event streams as soon as it is told to stop: uvicorn alone would wait for them."""

    def __init__(self, app: Starlette, settings: AdminSettings) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                host=settings.host,
                port=settings.port,
                http="h11",
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,  # whom to believe is for access/origin.py
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )
        self._app, self._settings = app, settings
        self._loop: asyncio.AbstractEventLoop | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._app.state.watch.stop()
        super().handle_exit(sig, frame)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._app.state.feed.stop)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Ends on SIGTERM and SIGINT, which uvicorn would raise again afterwards: to be told to end is no failure."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        for sig in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(sig, self.handle_exit, sig, None)
        try:
            yield
        finally:
            for sig in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(sig)

    async def serve_with_health(self) -> None:
        """Serves until told to stop; HEALTH_FILE is touched while the database answers."""
        self._loop = asyncio.get_running_loop()
        beat = asyncio.create_task(self._keep_health())
        try:
            await self.serve()
        finally:
            beat.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await beat
            self._settings.health_file.unlink(missing_ok=True)

    async def _keep_health(self) -> None:
        while True:
            with contextlib.suppress(*TROUBLE, OSError):
                if self.started:
                    await self._app.state.database.fetch_value("ping")
                    self._settings.health_file.touch()
            await asyncio.sleep(HEALTH_SECONDS if self.started else 0.1)
