"""Charts as SVG, made here: no script draws, and a table beside each says the same in numbers.

Sizes and places are attributes, colours are classes of style.css, so that the policy refuses nothing and dark mode
works. Every text is escaped.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

SPARK_WIDTH, SPARK_HEIGHT = 120, 28
CHART_WIDTH, CHART_HEIGHT = 720, 200
BARS_WIDTH, BARS_LEFT, LINE, LONGEST_LABEL = 480, 170, 22, 22
LEFT, BOTTOM, TOP = 64, 26, 8  # room for the axes' numbers


@dataclass(frozen=True)
class Part:
    """A share of a split bar: its class in style.css, its number, its words."""

    kind: str
    value: float
    label: str


def spark_bars(good: Sequence[float], bad: Sequence[float], title: str) -> Markup:
    """Small bars, one a value, with the bad ones on top of the good ones."""
    highest = max((first + second for first, second in zip(good, bad, strict=True)), default=0) or 1
    width = SPARK_WIDTH / max(1, len(good))
    bars = []
    for place, (first, second) in enumerate(zip(good, bad, strict=True)):
        base = float(SPARK_HEIGHT)
        for kind, value in (("good", first), ("bad", second)):
            if value > 0:
                height = max(1.0, value / highest * (SPARK_HEIGHT - 1))
                base -= height
                bars.append(_rect(kind, place * width, max(0.0, base), max(0.5, width - 1), height))
    bars.append(_rect("ground", 0, SPARK_HEIGHT - 0.5, SPARK_WIDTH, 0.5))
    return _svg("spark", SPARK_WIDTH, SPARK_HEIGHT, title, bars)


def spark_line(values: Sequence[float | None], title: str) -> Markup:
    """A small line; a gap where there is no value, a dot where one stands alone."""
    highest = max((value for value in values if value is not None), default=0) or 1
    step = SPARK_WIDTH / max(1, len(values) - 1)
    shapes = [_rect("ground", 0, SPARK_HEIGHT - 0.5, SPARK_WIDTH, 0.5)]
    for run in _runs(values):
        places = [(at * step, SPARK_HEIGHT - 2 - value / highest * (SPARK_HEIGHT - 4)) for at, value in run]
        if len(places) == 1:
            (x, y) = places[0]
            shapes.append(Markup('<circle class="dot" cx="{}" cy="{}" r="1.5"/>').format(_n(x), _n(y)))
        else:
            points = " ".join(f"{_n(x)},{_n(y)}" for x, y in places)
            shapes.append(Markup('<polyline class="line" points="{}"/>').format(points))
    return _svg("spark", SPARK_WIDTH, SPARK_HEIGHT, title, shapes)


def split_bar(parts: Sequence[Part], title: str) -> Markup:
    """One bar that shows how a whole is divided. What is there at all is at least a sliver."""
    width, height, whole = 400, 8, sum(part.value for part in parts)
    shapes, x = [_rect("empty", 0, 0, width, height)], 0.0
    for part in parts:
        if part.value > 0:
            share = max(2.0, part.value / whole * width)
            shapes.append(_rect(part.kind, x, 0, min(share, width - x), height))
            x += share
    return _svg("split", width, height, title, shapes, ratio="none")


def columns(values: Sequence[tuple[str, float]], title: str, *, highest_label: str) -> Markup:
    """A column for each labelled value, with a scale of none and most at the left and a few labels below."""
    highest = max((value for _, value in values), default=0) or 1
    room, height = CHART_WIDTH - LEFT, CHART_HEIGHT - TOP - BOTTOM
    width = room / max(1, len(values))
    shapes = [
        _text("axis end", LEFT - 6, TOP + 9, highest_label),
        _text("axis end", LEFT - 6, TOP + height, "0"),
        _rect("ground", LEFT, TOP + height, room, 1),
        _rect("ground faint", LEFT, TOP, room, 1),
    ]
    every = max(1, -(-len(values) // 8))
    for place, (label, value) in enumerate(values):
        x, tall = LEFT + place * width, value / highest * height
        if value > 0:
            shapes.append(_rect("good", x + width * 0.1, TOP + height - max(1, tall), width * 0.8, max(1, tall)))
        if place % every == 0:
            kind = "axis" if place // every % 2 == 0 else "axis second"  # which a phone has no room for
            shapes.append(_text(kind, x, CHART_HEIGHT - 6, label))
    return _svg("chart", CHART_WIDTH, CHART_HEIGHT, title, shapes)


def bars(values: Iterable[tuple[str, float, str]], title: str) -> Markup:
    """Lying bars with their label before and their number behind them."""
    rows = list(values)
    highest = max((value for _, value, _ in rows), default=0) or 1
    shapes = []
    for place, (label, value, shown) in enumerate(rows):
        y, length = place * LINE, value / highest * (BARS_WIDTH - BARS_LEFT - 64)
        shapes.append(_text("label", 0, y + 15, label[:LONGEST_LABEL] + ("…" if len(label) > LONGEST_LABEL else "")))
        shapes.append(_rect("good", BARS_LEFT, y + 5, max(1, length), LINE - 10))
        shapes.append(_text("axis", BARS_LEFT + 6 + length, y + 15, shown))
    return _svg("chart", BARS_WIDTH, max(LINE, len(rows) * LINE), title, shapes)


def _runs(values: Sequence[float | None]) -> list[list[tuple[int, float]]]:
    """The stretches without a gap."""
    runs: list[list[tuple[int, float]]] = [[]]
    for place, value in enumerate(values):
        if value is None:
            runs.append([])
        else:
            runs[-1].append((place, value))
    return [run for run in runs if run]


def _svg(
    kind: str, width: float, height: float, title: str, shapes: Iterable[Markup], ratio: str = "xMinYMin meet"
) -> Markup:
    return Markup(
        '<svg class="{}" viewBox="0 0 {} {}" preserveAspectRatio="{}" role="img" aria-label="{}">'
        "<title>{}</title>{}</svg>"
    ).format(kind, _n(width), _n(height), ratio, title, title, Markup("").join(shapes))


def _rect(kind: str, x: float, y: float, width: float, height: float) -> Markup:
    return Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>').format(
        kind, _n(x), _n(y), _n(width), _n(height)
    )


def _text(kind: str, x: float, y: float, text: str) -> Markup:
    return Markup('<text class="{}" x="{}" y="{}">{}</text>').format(kind, _n(x), _n(y), text)


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
