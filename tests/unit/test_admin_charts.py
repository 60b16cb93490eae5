"""Charts: their shapes stay inside the picture, whatever the numbers, and no text becomes markup."""

import re
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from services.admin import charts

VALUES = st.floats(min_value=0, max_value=1e15, allow_nan=False)


def shapes(svg: str) -> list[dict[str, str]]:
    """The attributes of everything inside the picture; it is well-formed, or this fails."""
    root = ElementTree.fromstring(svg)  # noqa: S314 - what we made ourselves
    assert root.attrib["role"] == "img"
    return [element.attrib for element in root if element.tag in ("rect", "circle", "polyline", "text")]


def inside(svg: str) -> bool:
    width, height = (float(size) for size in re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)[0])
    for shape in shapes(svg):
        if "width" in shape:
            right = float(shape["x"]) + float(shape["width"])
            below = float(shape["y"]) + float(shape["height"])
            if float(shape["x"]) < -0.01 or right > width + 0.6 or float(shape["y"]) < -0.01 or below > height + 0.6:
                return False
    return True


@given(st.lists(st.tuples(VALUES, VALUES), max_size=40))
def test_small_bars_stay_inside(pairs: list[tuple[float, float]]) -> None:
    assert inside(charts.spark_bars([good for good, _ in pairs], [bad for _, bad in pairs], "x"))


@given(st.lists(st.none() | VALUES, max_size=40))
def test_a_small_line_has_gaps_where_there_is_nothing(values: list[float | None]) -> None:
    svg = charts.spark_line(values, "x")
    runs = re.findall("v+", "".join(" " if value is None else "v" for value in values))

    assert svg.count("<polyline") + svg.count("<circle") == len(runs)
    assert inside(svg)


@given(st.lists(VALUES, min_size=4, max_size=4))
def test_a_split_bar_is_whole_and_shows_every_part_there_is(values: list[float]) -> None:
    kinds = ("running", "pending", "retry", "error")
    svg = charts.split_bar([charts.Part(kind, value, kind) for kind, value in zip(kinds, values, strict=True)], "x")
    drawn = {shape["class"] for shape in shapes(svg)}

    assert inside(svg)
    assert {kind for kind, value in zip(kinds, values, strict=True) if value > 0} <= drawn


@given(st.lists(st.tuples(st.text(max_size=60), VALUES), max_size=400))
def test_columns_and_bars_stay_inside(values: list[tuple[str, float]]) -> None:
    texts = [(re.sub(r"[^\x20-\ud7ff]", "", label), value) for label, value in values]

    assert inside(charts.columns(texts, "x", highest_label="1"))
    assert inside(charts.bars([(label, value, "1") for label, value in texts[:15]], "x"))


def test_a_label_is_text_whatever_it_says() -> None:
    hostile = '<script>alert(1)</script>"'
    for svg in (
        charts.bars([(hostile, 1, hostile)], hostile),
        charts.columns([(hostile, 1)], hostile, highest_label=hostile),
        charts.split_bar([charts.Part("error", 1, hostile)], hostile),
        charts.spark_bars([1], [1], hostile),
        charts.spark_line([1], hostile),
    ):
        assert "<script" not in svg
        shapes(svg)
