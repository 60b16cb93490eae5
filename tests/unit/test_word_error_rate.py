"""The measure by which the demo checks its transcript."""

import pytest

from demo.report import word_error_rate


@pytest.mark.parametrize(
    ("expected", "heard", "rate"),
    [
        ("he was not an ill disposed young man", "He was not an ill-disposed young man.", 0),
        ("and mister john dashwood", "And Mr. John Dashwood", 0),
        ("one two three four", "one too three", 0.5),
        ("one", "one two three", 2),
        ("one two", "", 1),
    ],
)
def test_word_error_rate_counts_changed_added_and_missing_words(expected: str, heard: str, rate: float) -> None:
    assert word_error_rate(expected, heard) == rate
