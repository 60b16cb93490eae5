"""How many tokens a transcript is, and where it is divided.

Sizes are counted without a tokenizer, as an upper bound: 2.5 letters to a token is less than any model measured makes
of Norwegian, and 3 bytes to a token covers other scripts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from openrouter_client.parts import part_tokens
from openrouter_client.usage import CHARACTERS_PER_TOKEN
from services.openrouter.blocks import Block

BYTES_PER_TOKEN = 3
OVERLAP_BLOCKS = 1


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
    return int(max(len(text) / CHARACTERS_PER_TOKEN, len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN)) + 1


def divide(blocks: Sequence[Block], sizes: Sequence[int], room: int) -> list[Chunk]:
    """Chunks that fit the room, of about the same size, each beginning with the end of the one before.

    `sizes` are the blocks' tokens. Without their overlap, the chunks are the blocks, in order.
    """
    target = part_tokens(sizes, room)
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
