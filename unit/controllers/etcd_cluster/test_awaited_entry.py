"""An entry for members that wait for one: it is a courtesy, so nothing else depends on its success."""

from collections import Counter
from typing import Any

from structlog.testing import capture_logs

from unit.passes.bench import Bench, bootstrapped
from unit.passes.bodies import MAKERS, ephemeral
from unit.passes.expected import member_names

ENTRIES = 6000
"""More than etcd lets a member have without having applied them."""


def fall_behind(made: Bench, name: str, *, for_seconds: float = 2.0) -> None:
    """A member hangs while clients write a lot, and gets all that as a raft snapshot; then nobody writes."""
    made.etcd.etcd.freeze(name)
    made.wait(for_seconds)
    made.etcd.etcd.raft_index += ENTRIES
    made.etcd.etcd.thaw(name)


def refuses(made: Bench, name: str) -> bool:
    member = made.etcd.etcd.member(name)
    return member.snapshot_index == made.etcd.etcd.raft_index


@MAKERS
def test_a_member_that_serves_and_refuses_writes_gets_an_entry(make: Any) -> None:
    kind, body = make()
    with bootstrapped(kind, body) as made:
        last = member_names(kind, 3)[-1]
        fall_behind(made, last)
        assert refuses(made, last)

        made.run_until(lambda: not refuses(made, last))
        made.settle()
        index = made.etcd.etcd.raft_index
        made.wait(60.0)
        assert made.etcd.etcd.raft_index == index, "nothing is appended at rest"


@MAKERS
def test_an_entry_that_fails_changes_no_report_and_delays_nothing(make: Any) -> None:
    kind, body = make()
    with bootstrapped(kind, body) as made:
        etcd, last = made.etcd.etcd, member_names(kind, 3)[-1]
        etcd.freeze(last)
        made.run_until(lambda: made.reason(kind) == "MemberUnhealthy")
        let_all_refuse(made)
        made.wait(10.0)
        written, reported, index = len(made.writes()), Counter(made.event_reasons()), etcd.raft_index
        with capture_logs() as logs:
            made.wait(120.0)

        assert etcd.raft_index == index
        assert made.reason(kind) == "MemberUnhealthy"
        assert len(made.writes()) == written
        assert Counter(made.event_reasons()) == reported
        assert not [entry for entry in logs if entry["event"] == "acted"]

        etcd.thaw(last)
        back = made.clock.monotonic()
        made.run_until(lambda: made.reason(kind) == "")
        assert made.clock.monotonic() - back < 3.0


def let_all_refuse(made: Bench) -> None:
    """As etcd does where the disk is too slow: the next entry would end it, and is refused itself."""
    for member in made.etcd.etcd.members:
        member.snapshot_index = made.etcd.etcd.raft_index


def test_a_voter_gets_entries_although_it_was_silent_for_long_while_its_cluster_was_paused() -> None:
    kind, body = ephemeral()
    with bootstrapped(kind, body) as made:
        made.edit(kind, "c", {"spec": {"paused": True}})
        made.etcd.etcd.freeze(member_names(kind, 3)[-1])
        made.wait(700.0)
        index = made.etcd.etcd.raft_index
        made.edit(kind, "c", {"spec": {"paused": False}})
        made.wait(600.0)

        assert 5 <= made.etcd.etcd.raft_index - index <= 40
