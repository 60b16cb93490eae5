"""A synthetic access log, written line by line: the shape of real podcast traffic, the same for the same seed.

Half of the listeners fetch in ranges, with a probe before them; an eighth of all lines is something else (feed, cover,
HEAD, errors), three of a hundred listeners are bots, and a few episodes have most of the traffic.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

START = 1_793_487_600  # 2026-11-01 00:00 in Oslo
DAYS = 30
EPISODES = 200
ADDRESSES = 30_000
AGENTS = [
    *(f"Podcasts/{4000 + n}.610.1 CFNetwork/1408.0.4 Darwin/22.{n % 6}.0" for n in range(40)),
    *(f"AppleCoreMedia/1.0.0.20D{n} (iPhone; U; CPU OS 16_{n % 8}_1 like Mac OS X; nb_no)" for n in range(60)),
    *(f"Spotify/8.8.{n} iOS/16.{n % 9} (iPhone14,{n % 8})" for n in range(40)),
    *(f"AntennaPod/3.{n % 9}.{n}" for n in range(20)),
    *(f"Overcast/3.{n} (+http://overcast.fm/; iOS podcast app)" for n in range(10)),
    *(
        f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/{n}.0.0.0 Safari/537.36"
        for n in range(99, 130)
    ),
    *(f"okhttp/4.{n}.0" for n in range(12)),
    *(f"Ukjent-{n}/1.0" for n in range(20)),
]
BOTS = [
    "Googlebot/2.1 (+http://www.google.com/bot.html)",
    "curl/7.88.1",
    "Pingdom.com_bot_version_1.4 (http://www.pingdom.com/)",
]
_LINE = (
    '{"level":"info","ts":%.7f,"logger":"http.log.access.media","msg":"handled request","request":{"remote_ip":"%s",'
    '"remote_port":"%d","client_ip":"%s","proto":"HTTP/2.0","method":"%s","host":"media.example.no","uri":"%s",'
    '"headers":{"Accept":["*/*"],"Accept-Language":["nb-NO,nb;q=0.9"],"Accept-Encoding":["identity"],%s"User-Agent":'
    '["%s"]},"tls":{"resumed":false,"version":772,"cipher_suite":4865,"proto":"h2","server_name":"media.example.no"}},'
    '"bytes_read":0,"user_id":"","duration":%.9f,"size":%d,"status":%d,"resp_headers":{"Server":["Caddy"],'
    '"Vary":["Accept-Encoding"],"Etag":["\\"dn7q3f0c0ul4-uvjl\\""],"Content-Type":["audio/mpeg"],"Last-Modified":'
    '["Sun, 29 Nov 2026 13:18:50 GMT"],"Accept-Ranges":["bytes"],%s"Content-Length":["%d"]}}\n'
)


_OTHER = (
    (0.05, "GET", "/feed.xml", 200, 48_000),
    (0.08, "GET", "/feed.xml", 304, 0),
    (0.10, "HEAD", "", 200, 0),
    (0.12, "GET", "/omslag.jpg", 200, 310_000),
    (0.13, "GET", "/borte.mp3", 404, 0),
)


@dataclass
class _Session:
    """A listener with an episode: one whole fetch, or a probe and ranges one after the other."""

    ip: str
    agent: str
    uri: str
    total: int
    place: int
    step: int  # bytes a request; 0 = the whole file at once


def synthetic_lines(count: int, seed: int = 7) -> Iterator[bytes]:
    """That many lines, in order of time."""
    draw = random.Random(seed)  # noqa: S311 - a measurement, no secret
    pause = DAYS * 86400 / count
    sessions: list[_Session] = []
    for number in range(count):
        at = START + number * pause
        if not sessions or draw.random() < 0.52:
            sessions.append(_new_session(draw))
        at_hand = draw.randrange(len(sessions))
        session = sessions[at_hand]
        yield _line(draw, at, session).encode()
        if session.place >= session.total or draw.random() < 0.1:
            sessions[at_hand] = sessions[-1]
            sessions.pop()


def _new_session(draw: random.Random) -> _Session:
    listener = int(ADDRESSES * draw.random())
    ip = f"{80 + listener % 60}.{listener // 60 % 256}.{listener % 251}.{listener % 241 + 1}"
    if listener % 7 == 0:
        ip = f"2001:db8:{listener % 65000:x}:{listener % 9}::{draw.randrange(4):x}"
    agent = draw.choice(BOTS) if draw.random() < 0.03 else AGENTS[(listener * 31 + draw.randrange(2)) % len(AGENTS)]
    episode = int(EPISODES * draw.random() ** 3)
    step = draw.choice((0, 0, 0, 262_144, 1_048_576, 4_194_304))
    return _Session(ip, agent, f"/ep-{episode:04d}.mp3", 20_000_000 + 100_003 * episode, -1 if step else 0, step)


def _line(draw: random.Random, at: float, session: _Session) -> str:
    total, uri, method, status, asked, answered = session.total, session.uri, "GET", 200, "", ""
    size = length = total
    kind = draw.random()
    other = next((row for row in _OTHER if kind < row[0]), None)
    if other is not None:
        _, method, path, status, size = other
        uri, length = path or uri, size
    elif session.step:
        first = max(session.place, 0)
        last = 1 if session.place < 0 else min(total, first + session.step) - 1
        session.place = 0 if session.place < 0 else last + 1
        size = length = last - first + 1
        status, asked = 206, f'"Range":["bytes={first}-{last}"],'
        answered = f'"Content-Range":["bytes {first}-{last}/{total}"],'
    else:
        session.place = total
    ip, agent = session.ip, session.agent
    return _LINE % (
        at, ip, 1024 + draw.randrange(60000), ip, method, uri, asked, agent, 0.02 + draw.random() * 8, size, status,
        answered, length,
    )  # fmt: skip
