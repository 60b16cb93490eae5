"""One line of Caddy's access log, decoded: the few fields that counting needs, and why a line cannot be read.

One bad line is one bad line. Nothing here trusts the input: headers come from anybody.
"""

import re
from collections.abc import Iterator
from io import BytesIO

import msgspec

LONGEST_LINE = 1 << 20  # bytes; a longer line is skipped without being held

_WORD = re.compile(r"[^\W\d_]+")
_CADDY_WORDS = """level ts time logger msg request remote ip port client proto method host uri headers user agent range
referer size status duration resp bytes read id content length type http log access handled info error warn debug tls
HTTP GET HEAD POST NOP true false null"""
_KNOWN_WORDS = frozenset(_CADDY_WORDS.split())
_SAMPLE_BYTES = 200
_BLANKS = b" \t\r"


class Headers(msgspec.Struct, gc=False):
    """Of the request; a header that was sent twice has two values, one that was redacted none."""

    user_agent: list[str] | None = msgspec.field(default=None, name="User-Agent")
    range: list[str] | None = msgspec.field(default=None, name="Range")
    referer: list[str] | None = msgspec.field(default=None, name="Referer")


class ResponseHeaders(msgspec.Struct, gc=False):
    """Of the response."""

    content_range: list[str] | None = msgspec.field(default=None, name="Content-Range")
    content_length: list[str] | None = msgspec.field(default=None, name="Content-Length")


class Request(msgspec.Struct, gc=False):
    """What was asked. `client_ip` came with Caddy 2.7, `remote_addr` ("ip:port") went with 2.5."""

    method: str
    uri: str
    host: str = ""
    remote_ip: str = ""
    client_ip: str = ""
    remote_addr: str = ""
    headers: Headers | None = None


class Line(msgspec.Struct, gc=False):
    """One line of an access log, or of another logger in the same file (no request)."""

    ts: float | int | str | None = None
    time: float | int | str | None = None  # the name that `time_key` is most often given
    logger: str = ""
    request: Request | None = None
    duration: float | int | str | None = None
    size: int = 0
    status: int = -1  # not said
    resp_headers: ResponseHeaders | None = None


class BadLine(msgspec.Struct, gc=False):
    """A line that cannot be read: why, where in the chunk, and its shape, which tells nobody's address."""

    reason: str  # json, utf8, schema, ts, ip, too_long, leftover
    offset: int  # from the chunk's start; in the file, once it is tallied
    sample: str


_decode = msgspec.json.Decoder(Line).decode


def decode_lines(chunk: bytes) -> list[Line | BadLine]:
    """The lines of a chunk that ends at a line's end, blank lines left out."""
    if len(chunk) <= LONGEST_LINE:
        try:
            # One by one: the decoder's own decode_lines would take {}{}, and an object that goes over two lines.
            # BytesIO finds the ends of lines at a third of what split costs (make bench-stats).
            return [_decode(text) for text in BytesIO(chunk)]
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass  # one of them is bad, or blank
    return list(_one_by_one(chunk))


def decode_line(text: bytes, offset: int = 0) -> Line | BadLine:
    """One line without its end."""
    try:
        return _decode(text)
    except msgspec.ValidationError:
        # The console format begins with a number, which is JSON as far as the decoder looks.
        return BadLine("schema" if text.lstrip().startswith(b"{") else "json", offset, shape_of(text))
    except RecursionError:
        return BadLine("json", offset, shape_of(text))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return BadLine("json" if _is_utf8(text) else "utf8", offset, shape_of(text))


def nth_line(chunk: bytes, index: int) -> tuple[int, bytes]:
    """Where a line of a decoded chunk stands, blank lines not counted, and its text."""
    offset = 0
    for text in chunk.split(b"\n"):
        if text.strip(_BLANKS):
            if index == 0:
                return offset, text
            index -= 1
        offset += len(text) + 1
    raise IndexError("the chunk has fewer lines")


def shape_of(text: bytes) -> str:
    """The beginning of a line with its words and digits made unreadable: enough to see what kind of line it was.

    A bad line may hold an address or a user agent anywhere, and this is kept for days. The words of Caddy's own
    fields stay; the line itself lies in the log, at the offset that is kept beside this.
    """
    start = text[:_SAMPLE_BYTES].decode("utf-8", "replace").replace("\0", "\ufffd")
    masked = _WORD.sub(lambda found: found[0] if found[0] in _KNOWN_WORDS else "a" * len(found[0]), start)
    return re.sub(r"\d", "9", masked)


def _one_by_one(chunk: bytes) -> Iterator[Line | BadLine]:
    offset = 0
    for text in chunk.split(b"\n"):
        if len(text) > LONGEST_LINE:
            yield BadLine("too_long", offset, shape_of(text))
        elif text.strip(_BLANKS):
            yield decode_line(text, offset)
        offset += len(text) + 1


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
