"""One call or many: how much of a transcript fits into a model's context, and where it is divided.

Sizes are counted without a tokenizer, as an upper bound: 2.5 letters to a token is less than any model measured makes
of Norwegian, and 3 bytes to a token covers other scripts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from services.openrouter.blocks import Block
from sidelinja_jobs import PermanentError

LETTERS_PER_TOKEN = 2.5
BYTES_PER_TOKEN = 3
USED_SHARE = 0.85  # of the context: the bound is one of prompts seen, not of all there can be
OUTPUT_SHARE = 0.25  # of the context, at most, for the answer
THOUGHTS = 1.25  # room for the model's thoughts, on top of the answer
MOST_PART_TOKENS = 40_000  # a model overlooks what stands in the middle of more
OVERLAP_BLOCKS = 1
LEAST_ROOM_TOKENS = 800  # less cannot take two blocks


@dataclass(frozen=True)
class Chunk:
    """Blocks of one call. The first `overlap` of them stood at the end of the chunk before."""

    blocks: Sequence[Block]
    overlap: int = 0

    @property
    def name(self) -> str:
        return f"{self.blocks[0].id}-{self.blocks[-1].id}"

    @property
    def own(self) -> Sequence[Block]:
        return self.blocks[self.overlap :]


def token_bound(text: str) -> int:
    """More tokens than this no tokenizer makes of a text."""
    return int(max(len(text) / LETTERS_PER_TOKEN, len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN)) + 1


def output_tokens(wanted: int, context_tokens: int) -> int:
    """The budget of an answer: what is wanted, or what a small context has to give."""
    return max(256, min(wanted, int(context_tokens * OUTPUT_SHARE)))


def room_tokens(context_tokens: int, prompt_tokens: int, answer_tokens: int) -> int:
    """What is left of the context for the material."""
    return int(context_tokens * USED_SHARE) - prompt_tokens - int(answer_tokens * THOUGHTS)


def require_room(room: int, context_tokens: int, least: int = LEAST_ROOM_TOKENS) -> None:
    """Raises PermanentError where not even a short part of a transcript fits."""
    if room < least:
        raise PermanentError(
            f"The model's context of {context_tokens} tokens leaves {max(room, 0)} for the transcript, at least "
            f"{least} are needed. Next: give the server a larger context and set "
            "OPENROUTER_CONTEXT_TOKENS, or choose another model",
            error_class="config",
        )


def divide(blocks: Sequence[Block], sizes: Sequence[int], room: int) -> list[Chunk]:
    """Chunks that fit the room, of about the same size, each beginning with the end of the one before.

    `sizes` are the blocks' tokens. Without their overlap, the chunks are the blocks, in order.
    """
    room = min(room, MOST_PART_TOKENS)
    total = sum(sizes)
    target = min(room, -(-total // -(-total // room)) + max(sizes)) if total else room
    chunks: list[Chunk] = []
    first, overlap = 0, 0
    while first + overlap < len(blocks):
        last, size = first, 0
        while last < len(blocks) and (size + sizes[last] <= target or last <= first + overlap):
            size += sizes[last]
            last += 1
        chunks.append(Chunk(blocks[first:last], overlap))
        overlap = OVERLAP_BLOCKS if last - first > 2 * OVERLAP_BLOCKS else 0
        first = last - overlap
    return chunks


def halves(chunk: Chunk) -> tuple[Chunk, Chunk] | None:
    """The chunk in two, or None where it is one block."""
    if len(chunk.own) < 2:
        return None
    middle = chunk.overlap + len(chunk.own) // 2
    return Chunk(chunk.blocks[:middle], chunk.overlap), Chunk(chunk.blocks[middle:])
