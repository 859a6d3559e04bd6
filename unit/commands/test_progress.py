"""Progress for people: a bar on a terminal, lines elsewhere."""

import io

import pytest

from etcd_operator.commands.progress import ProgressBar, countdown_text
from etcd_operator.formats import bytes_text, counted

MIB = 1 << 20


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def show(output: io.StringIO, steps: list[tuple[float, int]], total: int = 0, **flags: bool) -> str:
    clock = Clock()
    with ProgressBar("fetching", total, is_quiet=False, output=output, clock=clock) as progress:
        for seconds, done in steps:
            clock.now = 100.0 + seconds
            progress(done)
    return output.getvalue()


def test_lines_every_few_seconds() -> None:
    steps = [(1.0, 1 * MIB), (5.0, 10 * MIB), (6.0, 12 * MIB), (10.0, 20 * MIB)]
    assert show(io.StringIO(), steps, 40 * MIB).splitlines() == [
        "fetching: 10.0 MiB of 40.0 MiB, 2.0 MiB/s, 25%, 0:15 left",
        "fetching: 20.0 MiB of 40.0 MiB, 2.0 MiB/s, 50%, 0:10 left",
    ]


def test_a_bar_that_is_removed_at_the_end() -> None:
    shown = show(Terminal(), [(1.0, 10 * MIB), (1.01, 11 * MIB), (2.0, 20 * MIB)], 40 * MIB)
    first, second, blank, rest = shown.split("\r")[1:]
    assert first == "[######..................]  10.0 MiB of 40.0 MiB  10.0 MiB/s  25%  0:03 left"
    assert second.startswith("[############............]  20.0 MiB")
    assert (blank.strip(), rest) == ("", "")
    assert len(blank) >= len(first)


def test_a_stage_replaces_the_bar_on_a_terminal_only() -> None:
    for output, shown in ((Terminal(), f"\rrestoring\r{' ' * 9}\r"), (io.StringIO(), "")):
        with ProgressBar("verifying", 10, is_quiet=False, output=output, clock=Clock()) as progress:
            progress.stage("restoring")
        assert output.getvalue() == shown


def test_a_database_that_grew_is_never_more_than_whole() -> None:
    (line,) = show(io.StringIO(), [(5.0, 50 * MIB)], 40 * MIB).splitlines()
    assert line == "fetching: 50.0 MiB of 50.0 MiB, 10.0 MiB/s, 100%, 0:00 left"


def test_without_a_total_there_is_no_time_left() -> None:
    assert show(io.StringIO(), [(5.0, 50 * MIB)]) == "fetching: 50.0 MiB, 10.0 MiB/s\n"


def test_quiet_shows_nothing() -> None:
    output, clock = Terminal(), Clock()
    with ProgressBar("fetching", 10, is_quiet=True, output=output, clock=clock) as progress:
        clock.now += 60
        progress(5)
    assert output.getvalue() == ""


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 30, "5.0 GiB"), (1 << 52, "4096.0 TiB")],
)
def test_bytes_for_people(count: int, text: str) -> None:
    assert bytes_text(count) == text


@pytest.mark.parametrize(("seconds", "text"), [(-1, "0:00"), (65.4, "1:05"), (3723, "1:02:03")])
def test_durations_for_people(seconds: float, text: str) -> None:
    assert countdown_text(seconds) == text


def test_numbers_of_keys_for_people() -> None:
    assert [counted(count, "key") for count in (0, 1, 2)] == ["0 keys", "1 key", "2 keys"]
