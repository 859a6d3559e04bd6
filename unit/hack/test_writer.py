import pytest

from e2e.support.writer import Key


@pytest.mark.parametrize(
    ("number", "revision", "is_explained"),
    [
        (9, 20, True),  # what was acknowledged
        (9, 19, False),  # an older life of the same value
        (4, 21, True),  # an answer that did not come, executed late
        (4, 12, False),  # executed before what was acknowledged: that is lost then
        (11, 22, True),  # tried after it, without an answer
        (8, 21, False),  # acknowledged long ago: it cannot come back
    ],
)
def test_a_key_holds_what_was_acknowledged_last_or_a_later_write_of_unknown_outcome(
    number: int, revision: int, is_explained: bool
) -> None:
    key = Key(acknowledged=9, revision=20, unknown={4, 11})
    assert key.is_explained(number, revision) == is_explained
