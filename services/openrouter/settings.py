"""What the worker of openrouter_analyze reads, beside the settings of every worker and of the client."""

import os
from dataclasses import dataclass
from pathlib import Path

from sidelinja_jobs import SettingsError
from sidelinja_jobs.settings import setting
from sidelinja_jobs.volumes import Volume


@dataclass(frozen=True)
class AnalyzeSettings:
    """Settings of the analysis itself."""

    output_root: Path | None = setting(
        "OUTPUT_ROOT", default=None, help="where chapters and show notes go, for jobs that ask for files"
    )
    language: str = setting(
        "ANALYZE_LANGUAGE",
        default="nb",
        choices=("nb", "nn", "en"),
        help="of the answer where neither the job nor the transcript decides",
    )
    single_tokens: int = setting(
        "ANALYZE_SINGLE_TOKENS",
        default=100_000,
        minimum=1000,
        maximum=10_000_000,
        help="a longer transcript is asked about in parts, even where all of it fits the model",
    )

    @property
    def volumes(self) -> list[Volume]:
        """The folders that a job with files waits for while they are away."""
        return [] if self.output_root is None else [Volume("OUTPUT_ROOT", self.output_root, may_be_empty=True)]

    def require_folder(self) -> None:
        """Raises SettingsError when OUTPUT_ROOT is set and cannot be used."""
        if self.output_root is not None and not os.access(self.output_root, os.W_OK | os.X_OK):
            raise SettingsError(
                f"settings: OUTPUT_ROOT is {str(self.output_root)!r}, expected a folder that uid {os.getuid()} may "
                "write; mount it there, open it, or leave OUTPUT_ROOT out"
            )
