"""Log sources as they stand in the table, and the rules' view of them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.stats.instants import MILLISECOND, NANOSECOND
from services.stats.paths import Layout, bare_host, normal_path
from sidelinja_jobs.volumes import Volume


@dataclass(frozen=True)
class Source:
    """One log and where its media lie."""

    name: str
    log_folder: Path
    base_name: str
    layout: Layout
    time_zone: str
    media_folder: Path | None  # on this machine
    feed_file: Path | None
    whole_duration: float = NANOSECOND  # in seconds
    was_read: bool = False  # and some of what was read is not known to have vanished

    @property
    def volume(self) -> Volume:
        """The log's folder. One that was read is waited for while it is away; of another the setting is wrong."""
        return Volume(f"the log folder of {self.name}", self.log_folder)

    @classmethod
    def of_row(cls, row: dict[str, Any], log_root: Path, media_root: Path) -> "Source":
        """A row of stats.source, its folders below the roots that this worker sees."""
        layout = Layout(
            show=row["show"],
            media_prefix=row["media_prefix"],
            feed_paths=frozenset(map(normal_path, row["feed_paths"])),
            shows_by_folder=row["shows_by_folder"],
            hosts=frozenset(map(bare_host, row["hosts"])),
        )
        return cls(
            name=row["name"],
            log_folder=log_root / row["folder"],
            base_name=row["base_name"],
            layout=layout,
            time_zone=row["time_zone"],
            media_folder=_below(media_root, row["media_folder"]),
            feed_file=_below(media_root, row["feed_file"]),
            whole_duration=MILLISECOND if row["whole_durations"] == "ms" else NANOSECOND,
            was_read=row["was_read"],
        )


def _below(root: Path, name: str | None) -> Path | None:
    return None if name is None else root / name
