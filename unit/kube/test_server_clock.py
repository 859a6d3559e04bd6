"""How far our clock is from that of the API server."""

from datetime import timedelta
from email.utils import format_datetime

import pytest

from etcd_operator.errors import NotFound
from etcd_operator.kube.resources import PODS
from etcd_operator.kube.server_clock import ServerClock
from unit.fakes.clock import FakeClock
from unit.kube.clients import A, Raw, answering, client_of
from unit.kube.server import Asked, Line, first_then


@pytest.mark.parametrize(
    ("ahead", "took", "least"),
    [
        pytest.param(0.0, 0.0, 0.0, id="right"),
        pytest.param(0.9, 0.0, 0.0, id="within the second"),
        pytest.param(180.0, 0.0, 179.0, id="ahead"),
        pytest.param(-180.0, 0.0, -180.0, id="behind"),
        pytest.param(180.0, 35.0, 144.0, id="ahead, and the answer came late"),
        pytest.param(30.0, 35.0, 0.0, id="perhaps only a late answer"),
        pytest.param(-180.0, 35.0, -180.0, id="behind, and the answer came late"),
    ],
)
def test_no_more_is_stated_than_the_answer_shows(ahead: float, took: float, least: float) -> None:
    clock = FakeClock()
    seen = ServerClock(clock)
    seen.saw({"Date": format_datetime(clock.now(), usegmt=True)}, took)
    clock.jump(ahead)
    assert seen.offset() == timedelta(seconds=least)
    clock.advance(1000.0)
    assert seen.offset() == timedelta(seconds=least)


@pytest.mark.parametrize("date", ["", "now", "Thu, 01 Jan 2026 00:00:00 -0000", "Thu, 99 Jan 2026 0:0 GMT"])
def test_an_answer_without_a_date_shows_nothing(date: str) -> None:
    clock = FakeClock()
    seen = ServerClock(clock)
    clock.jump(86_400.0)
    seen.saw({"Date": date}, 0.0)
    assert seen.offset() == timedelta()


def test_the_last_date_of_all_is_no_failure() -> None:
    clock = FakeClock()
    seen = ServerClock(clock)
    seen.saw({"Date": "Fri, 31 Dec 9999 23:59:59 GMT"}, 60.0)
    clock.advance(60.0)
    assert seen.offset() < timedelta(days=-365)


def test_a_client_knows_it_from_its_newest_answer_whatever_that_is() -> None:
    clock = FakeClock()
    first, second = (format_datetime(clock.now() + timedelta(minutes=n), usegmt=True) for n in (0, 3))

    def refusing(_: Asked, line: Line) -> None:
        line.fail(404, "NotFound", Date=second)

    script = first_then(answering(200, b"{}", {"date": first}), refusing)
    with client_of(script, clock=clock) as (client, _):
        assert client.clock_offset() == timedelta()
        client.get(PODS, A, Raw)
        assert client.clock_offset() == timedelta()
        with pytest.raises(NotFound):
            client.get(PODS, A, Raw)
        assert client.clock_offset() == timedelta(minutes=-3)
