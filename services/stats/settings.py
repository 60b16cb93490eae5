"""What the stats worker reads from its environment, beside the settings of every worker."""

from dataclasses import dataclass
from pathlib import Path

from services.stats.addresses import Networks
from services.stats.agents import Classifier, OwnList
from services.stats.opawg import OpawgList
from sidelinja_jobs import SettingsError
from sidelinja_jobs.settings import setting


@dataclass(frozen=True)
class StatsSettings:
    """Settings of the counting; sources stand in the table stats.source."""

    log_root: Path = setting(
        "STATS_LOG_ROOT", default=Path("/logs"), help="folder that the sources' folders start from"
    )
    media_root: Path = setting(
        "MEDIA_ROOT", default=Path("/media"), help="folder of the episodes' files; may be missing"
    )
    every_minutes: int = setting(
        "STATS_EVERY_MINUTES", default=15, minimum=1, maximum=1440, help="between two runs, when the schedule is made"
    )
    run_seconds: int = setting(
        "STATS_RUN_SECONDS", default=120, minimum=1, maximum=3600, help="of one run; the next one goes on at once"
    )
    time_zone: str = setting("STATS_TIME_ZONE", default="Europe/Oslo", help="whose nights days are closed in")
    agents_folder: Path | None = setting(
        "STATS_AGENTS_FOLDER", default=None, help="the source files of opawg's user-agents-v2, in place of the own list"
    )
    country_file: Path | None = setting("STATS_COUNTRY_FILE", default=None, help="an mmdb; none = no countries")
    deny_file: Path | None = setting("STATS_DENY_FILE", default=None, help="networks that don't count, one a line")
    allow_file: Path | None = setting(
        "STATS_ALLOW_FILE", default=None, help="networks that count whatever their volume, one a line"
    )
    most_episodes: int = setting(
        "STATS_MOST_EPISODES", default=100, minimum=1, help="of one address and day; more is told as heavy"
    )
    most_downloads: int = setting(
        "STATS_MOST_DOWNLOADS", default=500, minimum=1, help="of one address and day; more is told as heavy"
    )
    exclude_heavy: bool = setting("STATS_EXCLUDE_HEAVY", default=False, help="true: such addresses don't count")


def read_networks(path: Path | None) -> Networks:
    """A file of networks, one a line; what follows a # is a remark.

    Raises:
        SettingsError: the file cannot be read, or a line is no network.
    """
    if path is None:
        return Networks()
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"settings: cannot read {path}: {error}") from error
    for number, line in enumerate(lines, start=1):
        try:
            Networks([text] if (text := line.partition("#")[0].strip()) else [])
        except ValueError as error:
            raise SettingsError(
                f"settings: {path}, line {number}: {error}, expected a network such as 192.0.2.0/24"
            ) from error
    return Networks(text for line in lines if (text := line.partition("#")[0].strip()))


def load_agents(folder: Path | None) -> tuple[Classifier, str]:
    """The list of user agents and its version.

    Raises:
        SettingsError: the folder's files cannot be read.
    """
    chosen = OwnList() if folder is None else OpawgList(folder)
    return chosen, chosen.version
