"""What the process that reads pastes runs. It imports no more than cleaning needs: its memory is the paste's."""

from collections.abc import Callable
from typing import Any

import msgspec

from services.research.clip import make_clip
from services.research.line import TooManyLinesError
from services.research.memory import keep_large_blocks_apart
from services.research.paste import Paste
from sidelinja_jobs.errors import PermanentError


def answer(paste: Paste, emit: Callable[[Any], None]) -> bytes:
    """One paste, one clip, as JSON."""
    keep_large_blocks_apart()
    try:
        return msgspec.json.encode(make_clip(paste))
    except TooManyLinesError as error:
        raise PermanentError(f"{error}. Next: paste the part that matters", error_class="too_long") from None
