"""Budgets ahead of every change; which members serve; running pods that never found again."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import pytest

from etcd_operator.controllers.etcd_cluster.observe import prober
from etcd_operator.etcd.errors import NotProbed
from etcd_operator.etcd.probe import Probe
from unit.fakes.apiserver import Answer, Json, Kind
from unit.fakes.apiserver.faults import Fault, Request
from unit.fakes.apiserver.kinds import BUDGETS, CLAIMS, PODS
from unit.passes.bench import PEER_LABEL, Bench, bootstrapped
from unit.passes.bodies import COREOS, IMPROBABLE, MAKERS, ephemeral, persistent
from unit.passes.disturbance import DISTURBANCES, EachWrite, run_or_die, survives
from unit.passes.expected import assert_finished
from unit.passes.upgrades import BOTH, of, set_version

Make = Callable[..., tuple[Kind, Json]]
EDITS: dict[str, Json] = {
    "fewer": {"spec": {"minAvailable": 0}},
    "a percentage": {"spec": {"minAvailable": "34%"}},
    "other pods": {"spec": {"selector": {"matchLabels": {"more": "narrow"}}}},
    "the same in other words": {"spec": {"minAvailable": None, "maxUnavailable": 1}},
}


def pod_of(made: Bench, member: str) -> Json:
    """The pod that runs a member."""
    pods = made.api.objects.select(PODS)
    return next(
        pod for pod in pods if pod["metadata"]["labels"].get(PEER_LABEL, pod["metadata"]["name"]) == member
    )


def gate_of(made: Bench, member: str) -> str:
    """The status of a member's readiness gate; empty while it has none."""
    conditions = pod_of(made, member)["status"]["conditions"]
    return next((c["status"] for c in conditions if c["type"].endswith("/member-serves")), "")


def empty(made: Bench, member: str) -> None:
    """The data directory of a running member is emptied; its process knows nothing of it yet."""
    pod = pod_of(made, member)["metadata"]
    claims = {
        claim["metadata"]["name"]: claim["metadata"]["uid"] for claim in made.api.objects.select(CLAIMS)
    }
    volume = claims.get(member, pod["uid"])
    (directory,) = [place for place in made.etcd.data if place.startswith(volume)]
    del made.etcd.data[directory]


def restart(made: Bench, member: str) -> None:
    """The member's process ends; the kubelet starts it again in the same pod."""
    made.world.restart("default", pod_of(made, member)["metadata"]["name"])


@MAKERS
def test_a_budget_that_is_deleted_comes_back(make: Make) -> None:
    kind, body = make()
    with bootstrapped(kind, body) as made:
        made.delete(BUDGETS, "c")
        made.run_until(lambda: "c" in made.names(BUDGETS))
        made.settle()
        assert_finished(made, kind, 3)


@MAKERS
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_budget_that_is_edited_is_put_right(make: Make, edit: Json) -> None:
    kind, body = make()
    with bootstrapped(kind, body) as made:
        before = made.get(BUDGETS)
        made.edit(BUDGETS, "c", edit)
        made.drain()
        made.settle()
        assert made.get(BUDGETS)["spec"] == before["spec"]
        assert made.get(BUDGETS)["metadata"]["uid"] == before["metadata"]["uid"]
        assert_finished(made, kind, 3)


@MAKERS
@pytest.mark.parametrize(("size", "to"), [(1, 3), (3, 1), (3, 5)])
def test_at_every_change_of_membership_the_budget_leaves_a_quorum_before_and_after(
    make: Make, size: int, to: int
) -> None:
    kind, body = make(size=size)
    with bootstrapped(kind, body) as made:
        etcd, seen = made.etcd.etcd, []

        def on_write(method: str, applied: bool) -> None:
            if method in ("MemberAdd", "MemberPromote", "MemberRemove"):
                voters = len(etcd.voters)
                seen.append((method, applied, made.get(BUDGETS)["spec"]["minAvailable"], voters))

        etcd.on_write = on_write
        made.edit(kind, "c", {"spec": {"size" if kind is COREOS else "replicas": to}})
        made.settle()
        assert len(seen) >= 4
        assert all(least >= max(voters, to) // 2 + 1 for _, _, least, voters in seen), seen
        etcd.on_write = None


@contextmanager
def silent(made: Bench, member: str) -> Iterator[None]:
    """The member's port refuses connections: silence that takes no time, on a busy machine either."""
    etcd = made.etcd.etcd
    known = etcd.member(member)
    address, peer_url = known.endpoint, known.peer_urls[0]
    etcd.stop(member)
    yield
    etcd.start(member, peer_url=peer_url, address=address)


def writes_to_pods(made: Bench) -> int:
    """How many writes to pods there were."""
    return sum(write.request.plural == "pods" for write in made.writes())


@MAKERS
def test_a_sick_member_is_reported_apart_once_and_reported_to_serve_again(make: Make) -> None:
    kind, body = make()
    with bootstrapped(kind, body) as made:
        names = list(made.etcd.running)
        assert [gate_of(made, name) for name in names] == ["True"] * 3
        with silent(made, names[1]):
            made.run_until(lambda: gate_of(made, names[1]) == "False")
            writes = writes_to_pods(made)
            made.wait(6.0)
            assert writes_to_pods(made) == writes
            assert [gate_of(made, name) for name in names] == ["True", "False", "True"]
        made.run_until(lambda: gate_of(made, names[1]) == "True")
        made.settle()
        assert_finished(made, kind, 3)


@MAKERS
def test_one_probe_without_an_answer_is_not_reported(make: Make) -> None:
    with bootstrapped(*make()) as made:
        name, writes, probes = made.etcd.running[2], len(made.writes()), []

        def probe(*args: Any, **options: Any) -> Probe:
            probes.append(name)
            with silent(made, name) if len(probes) == 1 else nullcontext():
                return made.probe(*args, **options)

        with patch.object(prober, "probe", probe):
            made.wait(12.0)
        assert len(probes) > 1
        assert len(made.writes()) == writes


@MAKERS
def test_initial_members_emptied_while_the_third_is_away_refuse_to_found_and_nothing_is_lost(
    make: Make,
) -> None:
    kind, body = make()
    with bootstrapped(kind, body) as made:
        names, process = list(made.etcd.running), made.etcd
        with silent(made, names[2]):
            for name in names[:2]:
                empty(made, name)
            for name in names[:2]:
                restart(made, name)
            made.run_until(lambda: "DataLost" in made.condition(kind, "Degraded")["message"])
            made.wait(10.0)
            assert made.reason(kind) == "QuorumLost"
            assert made.condition(kind, "Available")["status"] == "False"
            assert "True" not in {gate_of(made, name) for name in names}
        made.wait(10.0)
        assert process.running == names[2:]
        assert process.etcd.keys == {b"key": (b"value", 2)}
        assert process.etcd.writes == []
        assert made.objects()["pods"] == names
        assert len(made.etcds.by_token) == 1


def lose(made: Bench, member: str) -> None:
    """The member's volume is emptied and its process ends."""
    empty(made, member)
    restart(made, member)


HEALED = [
    pytest.param(ephemeral, COREOS, (0, 2, 3), "it dies after the reply", id="ephemeral: the next number"),
    pytest.param(
        persistent,
        IMPROBABLE,
        (0, 1, 2),
        "the reply is lost and it lives on",
        id="persistent: its own number",
    ),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("make", "kind", "numbers", "disturbance"), HEALED)
def test_a_member_whose_volume_is_emptied_under_it_is_replaced_whatever_happens_at_any_write(
    make: Make, kind: Kind, numbers: tuple[int, ...], disturbance: str
) -> None:
    writes = EachWrite()
    for write in writes:
        with bootstrapped(*make()) as made:
            made.wait(6.0)
            made.kill()
            lose(made, made.etcd.running[1])
            writes.goes_on = survives(made, DISTURBANCES[disturbance], write, lambda: None)
            assert made.etcd.etcd.keys == {b"key": (b"value", 2)}
            assert_finished(made, kind, 3, numbers)
    assert writes.runs >= 5


def missing_in(made: Bench, member: str) -> str:
    """The pod in which its data is missing, by the annotation of its claim."""
    annotations = made.get(CLAIMS, member)["metadata"]["annotations"]
    return str(annotations.get("etcd.improbable.io/data-missing-in", ""))


@pytest.mark.parametrize("dies", [False, True], ids=["it lives on", "it dies between mark and deletion"])
def test_a_volume_that_was_merely_not_mounted_once_keeps_its_claim_and_its_member(dies: bool) -> None:
    with bootstrapped(*persistent()) as made:
        made.wait(6.0)
        made.kill()
        old, ids, data = pod_of(made, "c-1")["metadata"], claim_ids(made), dict(made.etcd.data)
        lose(made, "c-1")
        made.start(dies_at=1 if dies else 0, dies_on="/persistentvolumeclaims/c-1")
        if dies:
            assert not run_or_die(made, made.settle)
            assert pod_of(made, "c-1")["metadata"]["uid"] == missing_in(made, "c-1")
            made.start()
        made.run_until(lambda: missing_in(made, "c-1") == old["uid"])
        made.etcd.data = data
        made.settle()
        assert (claim_ids(made), made.etcd.etcd.writes) == (ids, [])
        assert pod_of(made, "c-1")["metadata"]["uid"] != old["uid"]
        assert missing_in(made, "c-1") == ""
        assert made.event_reasons().count("PodRemade") == 1
        assert_finished(made, IMPROBABLE, 3)


def claim_ids(made: Bench) -> set[str]:
    return {claim["metadata"]["uid"] for claim in made.api.objects.select(CLAIMS)}


@MAKERS
def test_without_the_right_to_mark_pods_status_goes_on(make: Make) -> None:
    """The cluster serves all the same: readiness is for evictions."""
    kind, body = make()
    with bootstrapped(kind, body) as made:
        may_mark = False

        def refusing(request: Request) -> Fault | None:
            is_mark = request.is_write and request.plural == "pods" and request.subresource == "status"
            return Answer(code=403, reason="Forbidden") if is_mark and not may_mark else None

        made.api.before = refusing
        name = made.etcd.running[1]
        with silent(made, name):
            made.run_until(lambda: made.reason(kind) == "MemberUnhealthy")
            assert gate_of(made, name) == "True"
            may_mark = True
            made.run_until(lambda: gate_of(made, name) == "False")
        made.run_until(lambda: gate_of(made, name) == "True")


@MAKERS
def test_members_serve_on_while_the_operator_itself_cannot_ask_them(make: Make) -> None:
    """Without threads or files of its own it knows nothing, which is no reason to move clients away."""
    with bootstrapped(*make()) as made:
        members = [member.name for member in made.etcd.etcd.members]
        assert [gate_of(made, member) for member in members] == ["True"] * 3
        with patch.object(prober, "probe", side_effect=NotProbed("no file descriptor is left")):
            made.wait(10.0)
        assert [gate_of(made, member) for member in members] == ["True"] * 3
        made.settle()


SIZES = pytest.mark.parametrize("size", [2, 3, 4, 5])


def _evictable(made: Bench) -> int:
    """How many evictions are allowed: no kubelet has reported yet that another member is about to end."""
    counted = [pod for pod in made.api.objects.select(PODS) if _counts(pod)]
    return max(0, len(counted) - int(made.get(BUDGETS)["spec"]["minAvailable"]))


def _counts(pod: dict[str, dict[str, object]]) -> bool:
    conditions = pod["status"].get("conditions") or ()
    serves = any(c["type"].endswith("/member-serves") and c["status"] == "True" for c in conditions)  # type: ignore[attr-defined]
    return serves and "deletionTimestamp" not in pod["metadata"]


def _is_stop(request: Request) -> bool:
    """Whether an upgrade stops a member with it: by another image, or without its EtcdPeer."""
    if request.plural == "pods" and request.method == "PATCH":
        return isinstance(request.body, dict) and "containers" in request.body.get("spec", {})
    return request.plural == "etcdpeers" and request.method == "DELETE"


@BOTH
@SIZES
def test_evictions_and_the_stop_of_a_member_leave_a_quorum(kind: Kind, size: int) -> None:
    with bootstrapped(*of(kind, "3.6.16", size)) as made:
        left: list[int] = []

        def before(request: Request) -> None:
            if _is_stop(request):
                left.append(len(made.etcd.running) - 1 - _evictable(made))

        made.api.before = before
        set_version(made, kind, "3.6.17")
        made.settle()
        assert len(left) == size
        if size > 2:
            assert min(left) >= size // 2 + 1
        assert_finished(made, kind, size, version="3.6.17")


@BOTH
@SIZES
def test_evictions_and_the_removal_of_a_member_leave_a_quorum(kind: Kind, size: int) -> None:
    with bootstrapped(*of(kind, "3.6.16", size)) as made:
        etcd, left = made.etcd.etcd, []

        def on_write(method: str, applied: bool) -> None:
            if method == "MemberRemove" and not applied:
                remaining = len(etcd.voters) - 1
                left.append((remaining - _evictable(made), remaining // 2 + 1))

        etcd.on_write = on_write
        made.edit(kind, "c", {"spec": {"size" if kind is COREOS else "replicas": 1}})
        made.settle()
        assert len(left) == size - 1
        assert all(serving >= quorum for serving, quorum in left), left
        etcd.on_write = None
