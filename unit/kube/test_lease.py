"""Leader election: electors over HTTP against the fake API server, with its faults and a clock of ours."""

from collections.abc import Iterator

import pytest
import urllib3

from etcd_operator.kube.lease import Timing
from unit.fakes.apiserver import Answer, ApiServer, Cut, Fault, Request, Stall, no_fault
from unit.fakes.apiserver.kinds import LEASES
from unit.kube.electors import KEY, Bench
from unit.waiting import eventually


@pytest.fixture
def bench() -> Iterator[Bench]:
    with ApiServer() as api, urllib3.PoolManager(maxsize=8) as pool:
        yield Bench(api, pool)


def test_an_absent_lease_is_acquired(bench: Bench) -> None:
    first = bench.leading("first")
    assert first.is_leader()
    assert bench.lease()["holderIdentity"] == "first"
    assert bench.lease()["leaseDurationSeconds"] == 15
    assert bench.lease()["leaseTransitions"] == 0


def test_a_held_lease_is_acquired_only_after_it_was_unchanged_for_its_whole_duration(bench: Bench) -> None:
    _, second = bench.leading("first"), bench.elector("second")
    bench.clock.advance(14.0)  # not counted: the second has not read it yet
    second._attempt()
    bench.clock.advance(14.9)
    second._attempt()
    assert not second.is_leader()
    bench.clock.advance(0.2)
    second._attempt()
    assert second.is_leader()
    assert bench.lease()["leaseTransitions"] == 1


def test_a_renewed_lease_is_not_acquired(bench: Bench) -> None:
    first, second = bench.elector("first"), bench.elector("second")
    for _ in range(20):
        first._attempt()
        second._attempt()
        bench.clock.advance(2.0)
        assert first.is_leader()
        assert not second.is_leader()


def test_renewing_keeps_the_time_of_the_taking_and_the_number_of_changes(bench: Bench) -> None:
    first = bench.leading("first")
    taken = bench.lease()
    bench.clock.advance(2.0)
    first._attempt()
    renewed = bench.lease()
    assert renewed["acquireTime"] == taken["acquireTime"]
    assert renewed["renewTime"] != taken["renewTime"]
    assert renewed["leaseTransitions"] == 0


def test_a_renewal_keeps_labels_that_others_put_on_the_lease(bench: Bench) -> None:
    first = bench.leading("first")
    bench.api.objects.patch(LEASES, *KEY, {"metadata": {"labels": {"team": "db"}}}, "merge")
    first._attempt()
    assert bench.api.objects.get(LEASES, *KEY)["metadata"]["labels"] == {"team": "db"}
    assert first.is_leader()


def test_leadership_ends_by_the_leaders_own_clock(bench: Bench) -> None:
    first = bench.leading("first")
    bench.clock.advance(9.9)
    assert first.is_leader()
    bench.clock.advance(0.1)
    assert not first.is_leader()


def test_the_deadline_counts_from_before_the_request_was_sent(bench: Bench) -> None:
    """The others count from when it was applied: what the reply takes is not the leader's time."""
    first = bench.elector("first")

    def slow_reply(request: Request) -> None:
        bench.clock.advance(6.0)

    bench.api.after = slow_reply
    first._attempt()  # GET and POST: 12 seconds
    bench.api.after = no_fault
    assert not first.is_leader()


def test_of_two_that_make_the_lease_at_once_one_leads(bench: Bench) -> None:
    first, second = bench.elector("first"), bench.elector("second")

    def overtake(request: Request) -> Fault | None:
        if request.is_write:
            bench.api.before = no_fault
            first._attempt()
        return None

    bench.api.before = overtake
    second._attempt()
    assert (first.is_leader(), second.is_leader()) == (True, False)
    assert bench.lease()["holderIdentity"] == "first"


def test_a_leader_whose_lease_is_deleted_makes_it_again(bench: Bench) -> None:
    first = bench.leading("first")
    bench.api.objects.delete(LEASES, *KEY)
    bench.clock.advance(9.0)
    first._attempt()
    bench.clock.advance(9.0)
    assert first.is_leader()
    assert bench.lease()["holderIdentity"] == "first"


def test_a_lease_deleted_under_its_leader_is_not_acquired_before_its_duration_is_over(bench: Bench) -> None:
    _, second = bench.leading("first"), bench.elector("second")
    second._attempt()
    bench.api.objects.delete(LEASES, *KEY)
    second._attempt()
    assert not second.is_leader()
    bench.clock.advance(15.1)
    second._attempt()
    assert second.is_leader()


def test_a_lost_reply_does_not_lose_the_lease(bench: Bench) -> None:
    first = bench.leading("first")
    bench.clock.advance(2.0)
    bench.api.after = lambda request: Cut() if request.is_write else None
    first._attempt()
    bench.api.after = no_fault
    bench.clock.advance(7.0)
    first._attempt()  # meets its own, unanswered renewal
    bench.clock.advance(9.0)
    assert first.is_leader()
    assert bench.lease()["leaseTransitions"] == 0


def test_a_released_lease_is_acquired_at_once(bench: Bench) -> None:
    first, second = bench.leading("first"), bench.elector("second")
    second._attempt()
    assert first.release()
    assert bench.lease()["leaseDurationSeconds"] == 1  # for clients that read only the object
    assert not first.is_leader()
    second._attempt()
    assert second.is_leader()


def test_the_lease_of_another_is_not_released(bench: Bench) -> None:
    _, second = bench.leading("first"), bench.elector("second")
    assert not second.release()
    assert bench.lease()["holderIdentity"] == "first"


def test_a_release_that_fails_raises_nothing(bench: Bench) -> None:
    first = bench.leading("first")
    bench.api.before = lambda _: Answer(code=500)
    assert not first.release()


@pytest.mark.parametrize(
    "bad",
    [
        {"renew_deadline": 15.0},
        {"retry_period": 9.0},
        {"lease_duration": 15.5},
        {"early": 2.4},  # the holder may be about to renew
        {"early": 15.0},
    ],
)
def test_times_that_leave_no_room_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="lease"):
        Timing(**bad)


def test_a_running_elector_reports_that_it_leads_and_stops_silently(bench: Bench) -> None:
    first = bench.running("first")
    assert first.stop(30)
    assert first.release()
    assert bench.calls == ["first started"]
    assert bench.lease()["holderIdentity"] == ""


def test_a_running_elector_renews(bench: Bench) -> None:
    first = bench.elector("first")
    first.start()
    eventually(first.is_leader)
    for _ in range(20):
        before = bench.lease()["renewTime"]
        eventually(lambda: bench.clock.waiting == 2)  # the renewing thread, and that of the deadline
        bench.clock.advance(2.5)
        eventually(lambda before=before: bench.lease()["renewTime"] != before)  # type: ignore[misc]
    assert first.stop(30)
    assert bench.calls == ["first started"]


def test_an_elector_that_was_stopped_before_it_began_sends_nothing(bench: Bench) -> None:
    """Or a process that ends while it starts takes the Lease along, after it was to be released."""
    asked: list[Request] = []
    bench.api.before = asked.append
    first = bench.elector("first")
    assert first.stop(0.0)
    first.start()
    assert first.stop(30)
    assert not asked
    assert bench.calls == []


def test_a_leader_whose_renewal_hangs_stops_leading_on_time(bench: Bench) -> None:
    first, stall = bench.elector("first"), Stall()
    first.start()
    eventually(lambda: bench.calls == ["first started"])
    asked: list[Request] = []

    def hang(request: Request) -> Fault:
        asked.append(request)
        return stall

    bench.api.before = hang
    bench.clock.advance(3.0)
    eventually(lambda: asked)
    bench.clock.advance(7.1)
    assert not first.is_leader()
    eventually(lambda: bench.calls == ["first started", "first stopped"])
    assert not first.release()  # a renewal is in flight: it could take the lease again
    assert len(asked) == 1
    stall.released.set()
    assert first.stop(30)


def test_an_elector_does_not_seek_a_lost_leadership_again(bench: Bench) -> None:
    first = bench.running("first")
    bench.api.before = lambda _: Answer(code=500)

    def stopped_in_time() -> bool:
        bench.clock.advance(1.0)
        return "first stopped" in bench.calls

    eventually(stopped_in_time)
    bench.api.before = no_fault
    assert first.stop(30)
    assert not first._attempt()
    assert not first.is_leader()
