"""What the whisper worker reads from its environment, beside the settings of every worker."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from sidelinja_jobs import SettingsError
from sidelinja_jobs.settings import setting
from sidelinja_jobs.volumes import Volume

DEVICES = ("cpu", "auto", "cuda")
COMPUTE_TYPES = (
    *("auto", "int8", "int8_float32", "float32"),
    *("float16", "bfloat16", "int8_float16", "int8_bfloat16"),  # on a GPU alone
)


@dataclass(frozen=True)
class WhisperSettings:
    """Settings of the transcription itself."""

    media_root: Path = setting("MEDIA_ROOT", default=Path("/media"), help="folder that the jobs' paths start from")
    output_root: Path | None = setting(
        "OUTPUT_ROOT", default=None, help="where transcripts go when the audio's folder is read-only"
    )
    model_root: Path = setting("MODEL_ROOT", default=Path("/models"), help="folder that holds the model's folder")
    model_name: str = setting("WHISPER_MODEL", default="base", help="name of the model's folder in MODEL_ROOT")
    device: str = setting(
        "WHISPER_DEVICE", default="cpu", choices=DEVICES, help="auto = a GPU where one works; cuda = nothing else"
    )
    compute_type: str = setting(
        "WHISPER_COMPUTE_TYPE", default="auto", choices=COMPUTE_TYPES, help="precision of the arithmetic"
    )
    batch_size: int = setting(
        "WHISPER_BATCH_SIZE", default=0, minimum=0, maximum=64, help="windows at once on a GPU; 0 = by its memory"
    )
    beam_size: int = setting(
        "WHISPER_BEAM_SIZE", default=5, minimum=1, maximum=10, help="1 is a fifth cheaper and less exact"
    )
    cpu_threads: int = setting(
        "WHISPER_CPU_THREADS", default=0, minimum=0, maximum=256, help="0 = as many as there are cores"
    )
    unit_seconds: int = setting(
        "UNIT_SECONDS", default=300, minimum=10, maximum=1800, help="audio between two checkpoints; bounds memory"
    )

    engine_max_jobs: int = setting(
        "ENGINE_MAX_JOBS", default=200, minimum=0, maximum=1_000_000, help="jobs of one engine process; 0 = no limit"
    )
    engine_max_rss_mb: int = setting(
        "ENGINE_MAX_RSS_MB", default=0, minimum=0, maximum=1_000_000, help="memory of an idle engine; 0 = no limit"
    )

    def require_folders(self) -> None:
        """Raises SettingsError when a folder is not there or cannot be used by this process's user."""
        problems = [_folder_problem("MEDIA_ROOT", self.media_root, os.R_OK | os.X_OK, "read")]
        if self.output_root is not None:
            problems.append(_folder_problem("OUTPUT_ROOT", self.output_root, os.W_OK | os.X_OK, "write"))
        if any(problems):
            raise SettingsError("settings: " + "; ".join(problem for problem in problems if problem))

    @property
    def volumes(self) -> list[Volume]:
        """The folders that a job waits for while they are away."""
        output = [] if self.output_root is None else [Volume("OUTPUT_ROOT", self.output_root, may_be_empty=True)]
        return [Volume("MEDIA_ROOT", self.media_root), *output]

    @property
    def can_write(self) -> bool:
        """Whether transcripts have a place: beside audio that lies at the top, or below OUTPUT_ROOT."""
        return self.output_root is not None or os.access(self.media_root, os.W_OK | os.X_OK)


def _folder_problem(name: str, folder: Path, mode: int, wanted: str) -> str | None:
    if not folder.is_dir():
        return f"{name} is {str(folder)!r}, expected a folder; mount it there, or set {name}"
    if os.access(folder, mode):
        return None
    state = folder.stat()
    return (
        f"{name} is {str(folder)!r}, which uid {os.getuid()}, gid {os.getgid()} may not {wanted}: it belongs to "
        f"{state.st_uid}:{state.st_gid}, mode {stat.S_IMODE(state.st_mode):04o}; run the worker as its owner (in the "
        "stack: MEDIA_UID, MEDIA_GID) or open the folder"
    )
