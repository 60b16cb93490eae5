"""Makes docs/pictures: the admin view as it looks on a working day, with invented jobs.

    .venv/bin/python bench/admin_pictures.py

Runs the view on an embedded PostgreSQL and looks at it with Debian's Chromium. To be run again when the pages change.
"""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from demo.embedded_postgres import NOT_DURABLE, EmbeddedPostgres
from tests.databases import Database, Server
from tests.services.admin_site import admin_site_with, logged_in_page, running_browser

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "pictures"
# Name, path, width, height, colours.
PICTURES = (
    ("now", "/", 1180, 900, "light"),
    ("now-phone", "/", 360, 780, "dark"),
    ("statistics", "/statistics", 1180, 820, "light"),
    ("spend", "/spend", 1180, 700, "dark"),
    ("job", "/jobs/7c40d1b2-93ce-4e05-8a61-0f2b5d7e9a13", 1180, 960, "light"),
    ("errors", "/errors", 1180, 560, "dark"),
    ("transcript", "/jobs/2b9e6f04-5a7d-4c38-b1f0-64c8e2a7d951/transcript#t=10.5", 1180, 760, "light"),
    ("transcript-phone", "/jobs/2b9e6f04-5a7d-4c38-b1f0-64c8e2a7d951/transcript#t=10.5", 360, 780, "dark"),
)
RECORDING = "2026/ep39.mp3"
SCENE = Path(__file__).with_suffix(".sql").read_text()


def take(browser: Any, site: Any) -> None:
    """Every picture, once the page follows."""
    FOLDER.mkdir(exist_ok=True)
    for name, path, width, height, scheme in PICTURES:
        size = {"width": width, "height": height}
        with logged_in_page(browser, site, viewport=size, color_scheme=scheme) as page:
            page.goto(path)
            page.locator("#live[data-state=on]").wait_for()
            page.screenshot(path=FOLDER / f"{name}.png")
            print(f"{name}.png: {(FOLDER / f'{name}.png').stat().st_size // 1024} KiB")


def main() -> None:
    """Set the scene and take the pictures."""
    with tempfile.TemporaryDirectory(prefix="jobbko-pictures-") as name:
        Path(name).chmod(0o755)
        with EmbeddedPostgres(Path(name) / "server", settings=NOT_DURABLE) as postgres:
            server = Server(postgres.dsn())
            server.prepare()
            database: Database = server.create_database()
            database.rows(SCENE)
            with (
                admin_site_with(database, ADMIN_ENVIRONMENT="demo", OPENROUTER_DAY_BUDGET_USD="0.25") as site,
                running_browser() as browser,
            ):
                recording = site.settings.media_root / RECORDING
                recording.parent.mkdir()
                shutil.copy(ROOT / "demo" / "sample.mp3", recording)
                take(browser, site)
            database.close()


if __name__ == "__main__":
    main()
