"""What the process that reads pastes runs. It imports no more than cleaning needs: its memory is the paste's."""

from collections.abc import Callable
from typing import Any

import msgspec

from services.research.clip import make_clip
from services.research.line import TooLargeError
from services.research.memory import keep_large_blocks_apart
from services.research.paste import Paste
from sidelinja_jobs.errors import PermanentError

MOST_CLIP_BYTES = 14_000_000  # the database takes 16 MB, and writes JSON with blanks in it


def answer(paste: Paste, emit: Callable[[Any], None]) -> bytes:
    """One paste, one clip, as JSON."""
    keep_large_blocks_apart()
    try:
        clip = msgspec.json.encode(make_clip(paste))
    except TooLargeError as error:
        raise _too_long(str(error)) from None
    if len(clip) > MOST_CLIP_BYTES:
        raise _too_long(f"the clip would have {len(clip)} bytes, at most {MOST_CLIP_BYTES} are kept")
    return clip


def _too_long(what: str) -> PermanentError:
    return PermanentError(f"{what}. Next: paste the part that matters", error_class="too_long")
