"""job_type.toml: the rules of a job type, in the folder of its service.

`migrate` writes them into the table job_type and makes the login role; the worker reads its own for its name.
"""

import tomllib
from pathlib import Path

import msgspec

from sidelinja_jobs.errors import SettingsError

FILE_NAME = "job_type.toml"


class JobType(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Rules of one job type. Defaults are those of the table job_type, which has all but the drain and the secrets."""

    name: str
    role: str
    lease_seconds: int = 120
    longest_run_seconds: int = 21600
    stall_seconds: int = 0  # 0 = no limit
    drain_seconds: int = 10  # after SIGTERM a running handler may go on for this long
    batch_size: int = 1
    payload_limit_bytes: int = 1_048_576
    keep_completed_days: int = 0  # 0 = for ever
    keep_error_days: int = 0
    follow_ups: list[str] = []
    backoff_base_seconds: int = 30
    backoff_cap_seconds: int = 3600
    backoff_jitter: float = 0.0
    operator_secrets: list[str] = []  # what only an operator can give, such as a provider's key: names of its files

    @classmethod
    def load(cls, folder: Path | str) -> "JobType":
        """Reads job_type.toml in a service's folder.

        Raises:
            SettingsError: the file is missing or wrong, with its path and the field.
        """
        path = Path(folder) / FILE_NAME
        try:
            return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), cls)
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
            raise SettingsError(f"{path}: {error}. Next: correct this file") from error

    @classmethod
    def load_all(cls, services: Path | str) -> "list[JobType]":
        """Reads the file of every service that has one, in name order."""
        return [cls.load(path.parent) for path in sorted(Path(services).glob(f"*/{FILE_NAME}"))]
