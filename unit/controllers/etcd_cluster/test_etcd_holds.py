"""What etcd reports that keeps the operator from acting: alarms, other clusters, authentication."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from unit.fakes.apiserver.kinds import BUDGETS, CLAIMS, PODS, SERVICES
from unit.fakes.etcd.cluster import FakeEtcdCluster
from unit.passes.bench import Bench, bootstrapped
from unit.passes.bodies import COREOS, IMPROBABLE, MAKERS, PEERS, ephemeral
from unit.passes.expected import assert_finished, member_names


@MAKERS
def test_a_full_store_is_reported_and_keeps_no_member_from_being_replaced(make: Callable[..., Any]) -> None:
    kind, body = make()
    with bootstrapped(kind, body) as made:
        etcd, last = made.etcd.etcd, member_names(kind, 3)[-1]
        numbers = (0, 1, 3) if kind is COREOS else (0, 1, 2)
        alarm = (etcd.members[0].id, "NOSPACE")
        etcd.alarms.add(alarm)
        made.run_until(lambda: made.reason(kind) == "OutOfSpace")
        assert "alarm disarm" in made.condition(kind, "Degraded")["message"]
        assert made.status(kind)["conditions"][0]["status"] == "True"
        made.delete(PODS if kind is COREOS else CLAIMS, last)
        if kind is IMPROBABLE:
            made.delete(PEERS, last)
        removed = next(member.id for member in etcd.members if member.name == last)
        made.run_until(lambda: removed not in {member.id for member in etcd.members})
        made.run_until(lambda: [m.is_learner for m in etcd.members] == [False] * 3)
        assert made.reason(kind) == "OutOfSpace"
        etcd.alarms.discard(alarm)
        made.settle()
        assert_finished(made, kind, 3, numbers)


@MAKERS
def test_a_member_with_corrupt_data_is_replaced_and_writes_are_taken_again(make: Callable[..., Any]) -> None:
    kind, body = make()
    with bootstrapped(kind, body) as made:
        etcd, last = made.etcd.etcd, member_names(kind, 3)[-1]
        before = {member.id for member in etcd.members}
        named = etcd.member(last).id
        etcd.member(last).hash = 77
        etcd.alarms.add((named, "CORRUPT"))
        made.run_until(lambda: made.reason(kind) == "DataCorrupt")
        assert last in made.condition(kind, "Degraded")["message"]
        made.settle()
        assert not etcd.alarms
        assert {member.id for member in etcd.members} > before - {named}
        assert named not in {member.id for member in etcd.members}
        assert {"MemberRemoved", "AlarmDisarmed"} <= set(made.event_reasons())
        assert_finished(made, kind, 3, (0, 1, 3) if kind is COREOS else (0, 1, 2))


@MAKERS
def test_nobody_is_removed_for_corrupt_data_while_the_others_differ_too(make: Callable[..., Any]) -> None:
    kind, body = make()
    with bootstrapped(kind, body) as made:
        etcd, names = made.etcd.etcd, member_names(kind, 3)
        before = {member.id for member in etcd.members}
        etcd.member(names[0]).hash = 77
        etcd.alarms.add((etcd.member(names[2]).id, "CORRUPT"))
        made.run_until(lambda: "differs, too" in made.condition(kind, "Degraded").get("message", ""))
        made.wait(60.0)
        assert (made.reason(kind), made.condition(kind, "Available")["status"]) == ("DataCorrupt", "True")
        assert {member.id for member in etcd.members} == before
        etcd.member(names[0]).hash = None
        made.settle()
        assert not etcd.alarms


def routed(made: Any) -> set[str]:
    """The members that the Service for clients selects."""
    selector = made.get(SERVICES, "c")["spec"]["selector"].items()
    pods = [pod["metadata"] for pod in made.api.objects.select(PODS)]
    return {
        pod["labels"].get("etcd.improbable.io/peer-name", pod["name"])
        for pod in pods
        if selector <= pod["labels"].items()
    }


@MAKERS
def test_clients_reach_only_members_of_the_cluster_on_record(make: Callable[..., Any]) -> None:
    kind, body = make()
    other = FakeEtcdCluster(cluster_id=0xFEED)
    with bootstrapped(kind, body) as made:
        names, etcd = member_names(kind, 3), made.etcd.etcd
        member, pods = etcd.member(names[2]), made.objects()["pods"]
        address, peer_url = member.endpoint, member.peer_urls[0]
        assert routed(made) == set(names)
        etcd.stop(names[2])
        other.bootstrap({names[2]: peer_url})
        other.start(names[2], peer_url=peer_url, address=address)
        try:
            made.run_until(lambda: made.reason(kind) == "SplitBrain")
            made.run_until(lambda: routed(made) == set(names[:2]))
            assert names[2] in made.condition(kind, "Degraded")["message"]
            made.wait(60.0)
            assert made.objects()["pods"] == pods
            made.rest()
        finally:
            other.close()
        etcd.start(names[2], peer_url=peer_url, address=address)
        made.settle()
        assert routed(made) == set(names)
        assert_finished(made, kind, 3)


def is_ready(made: Any) -> bool:
    """Whether three pods have what their readiness gates ask for."""
    pods = made.api.objects.select(PODS)
    found = [c for pod in pods for c in pod["status"].get("conditions", ())]
    gates = [c["status"] for c in found if c["type"].endswith("/member-serves")]
    return gates == ["True"] * 3 and len(pods) == 3


@MAKERS
def test_members_that_answer_only_users_are_kept_ready_and_only_what_needs_no_user_is_done(
    make: Callable[..., Any],
) -> None:
    kind, body = make()
    with bootstrapped(kind, body) as made:
        assert is_ready(made)
        etcd = made.etcd.etcd
        members = {member.id for member in etcd.members}
        etcd.auth.require_root("secret")
        made.run_until(lambda: made.reason(kind) == "AuthEnabled")
        assert "etcdctl auth disable" in made.condition(kind, "Degraded")["message"]
        assert made.condition(kind, "Available")["status"] == "True"
        made.wait(60.0)
        assert is_ready(made)

        made.delete(BUDGETS, "c")
        made.delete(SERVICES, "c")
        if kind is IMPROBABLE:
            made.delete(PEERS, "c-1")
            made.delete(PODS, next(name for name in made.names(PODS) if name.startswith("c-2")))
        made.edit(kind, "c", {"spec": {"size" if kind is COREOS else "replicas": 5}})
        made.wait(60.0)
        made.run_until(lambda: is_ready(made))
        assert (made.names(BUDGETS), made.reason(kind)) == (["c"], "AuthEnabled")
        assert "c" in made.names(SERVICES)
        assert {member.id for member in etcd.members} == members
        made.rest()

        etcd.auth.disable()
        made.settle()
        assert_finished(made, kind, 5, (0, 1, 2, 3, 4))


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


@pytest.mark.exhaustive
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


@pytest.mark.exhaustive
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
