"""When the Lease of a holder that has ended is taken before it expires, and when it is not."""

import json
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import urllib3

from etcd_operator.kube.lease_lock import Candidate, ObservedLease
from etcd_operator.kube.lease_record import HOLDER_ANNOTATION, Lease, Spec
from etcd_operator.kube.own_pod import OwnPod
from unit.fakes.apiserver import Answer, ApiServer, Cut, Fault, Request, Stall, no_fault
from unit.fakes.apiserver.kinds import LEASES, NODES, PODS
from unit.kube.early import CALL, EARLY, NODE, World, lease_of, pod
from unit.kube.electors import KEY
from unit.waiting import eventually


@pytest.fixture
def world() -> Iterator[World]:
    with ApiServer() as api, urllib3.PoolManager(maxsize=8) as pool:
        yield World(api, pool)


@pytest.mark.parametrize(
    ("lease", "ours", "age", "free"),
    [
        pytest.param(lease_of("", None), None, 0.0, True, id="released"),
        pytest.param(lease_of(None, None), None, 0.0, True, id="never held"),
        pytest.param(lease_of("me", None), None, 0.0, True, id="ours"),
        pytest.param(lease_of("x", None), None, 14.9, False, id="another's"),
        pytest.param(lease_of("x", None), None, 15.0, True, id="another's, expired"),
        pytest.param(lease_of("x", None, 60), None, 59.9, False, id="as long as its holder declares"),
        pytest.param(lease_of("x", None, None), None, 14.9, False, id="without a duration: ours counts"),
        pytest.param(lease_of("x", pod(1)), pod(1), 0.0, True, id="our predecessor's in this pod"),
        pytest.param(lease_of("x", pod(1)), pod(2), 0.0, False, id="another pod's"),
        pytest.param(lease_of("x", pod(1)), None, 0.0, False, id="a pod's, we have none"),
        pytest.param(lease_of("x", None), pod(1), 0.0, False, id="one without a pod, we have one"),
    ],
)
def test_when_a_lease_is_free(lease: Lease, ours: OwnPod | None, age: float, free: bool) -> None:
    assert ObservedLease(lease, 100.0).is_free(Candidate("me", ours), 100.0 + age, 15.0) is free


@pytest.mark.parametrize("note", ["", "{", "[]", '{"identity":"x"}', '{"identity":"x","pod":{"uid":1}}'])
def test_an_annotation_in_another_form_names_no_pod(note: str) -> None:
    lease = Lease({"resourceVersion": "1", "annotations": {HOLDER_ANNOTATION: note}}, Spec("x"))
    assert lease.pod is None


def test_the_pod_of_a_former_holder_is_not_that_of_the_present_one() -> None:
    """An older version of the operator leaves the annotation as it was."""
    former = lease_of("former", pod(1))
    assert former.pod == pod(1)
    assert Lease(former.metadata, Spec(holder_identity="older version")).pod is None


def test_a_restarted_container_acquires_the_lease_at_once(world: World) -> None:
    world.start("first", pod(1))._attempt()
    second = world.start("second", pod(1))
    second._attempt()
    assert second.is_leader()
    assert world.lease()["leaseTransitions"] == 1


def test_a_holder_with_the_same_name_of_pod_and_another_uid_is_somebody_else(world: World) -> None:
    world.start("first", pod(1))._attempt()
    world.delete_pod(pod(1))
    world.node_is("False")
    second = world.start("second", pod(1))
    assert world.seconds_until_taken(second) >= 15.0


def test_the_last_renewal_of_a_dead_predecessor_costs_one_more_attempt(world: World) -> None:
    first, second = world.start("first", pod(1)), world.start("second", pod(1))
    first._attempt()

    def renew_between(request: Request) -> Fault | None:
        if request.method == "PUT":
            world.api.before = no_fault
            world.clock.advance(0.1)
            first._attempt()
        return None

    world.api.before = renew_between
    second._attempt()
    assert not second.is_leader()
    world.clock.advance(second._next_try() - world.clock.monotonic())
    assert world.clock.monotonic() < 0.4
    second._attempt()
    assert second.is_leader()


def test_a_holder_whose_pod_is_deleted_is_replaced_after_three_seconds(world: World) -> None:
    first, second = world.rivals()
    world.delete_pod(pod(1))
    assert world.seconds_until_taken(second) == EARLY
    first._attempt()
    assert not first.is_leader()


def test_the_next_attempt_is_made_at_that_moment(world: World) -> None:
    _, second = world.rivals()
    world.delete_pod(pod(1))
    tries = 0
    while not second.is_leader():
        second._attempt()
        tries += 1
        if not second.is_leader():
            world.clock.advance(max(0.0, second._next_try() - world.clock.monotonic()))
    assert world.clock.monotonic() == pytest.approx(EARLY)
    assert tries < 10


def still_there(world: World, own: OwnPod) -> None:
    """Nothing happens to the pod."""


def being_deleted(world: World, own: OwnPod) -> None:
    note = {"metadata": {"finalizers": ["test/kept"]}}
    world.api.objects.patch(PODS, "default", own.name, note, "merge")
    world.delete_pod(own)


def node_is(ready: str, world: World, own: OwnPod) -> None:
    world.delete_pod(own)
    world.node_is(ready)


def node_gone(world: World, own: OwnPod) -> None:
    world.delete_pod(own)
    world.api.objects.delete(NODES, "", NODE)


def kubelet_silent(world: World, own: OwnPod) -> None:
    """The node's condition is still Ready: nobody has noticed yet."""
    world.delete_pod(own)
    world.renew_node(age=20.0)


def kubelet_without_a_lease(world: World, own: OwnPod) -> None:
    world.delete_pod(own)
    world.api.objects.delete(LEASES, "kube-node-lease", NODE)


def kubelets_lease_without_a_time(world: World, own: OwnPod) -> None:
    world.delete_pod(own)
    world.api.objects.patch(LEASES, "kube-node-lease", NODE, {"spec": {"renewTime": None}}, "merge")


def forbidden(plural: str, world: World, own: OwnPod) -> None:
    world.delete_pod(own)
    world.api.before = lambda request: (
        Answer(code=403, reason="Forbidden")
        if request.plural == plural and not request.path.endswith("/operator")
        else None
    )


NOT_EARLY = {
    "the pod is there": still_there,
    "the pod is being deleted": being_deleted,
    "its node is not ready": partial(node_is, "False"),
    "its node is unknown": partial(node_is, "Unknown"),
    "its node is gone": node_gone,
    "its kubelet is silent": kubelet_silent,
    "its kubelet has no Lease": kubelet_without_a_lease,
    "its kubelet's Lease has no time": kubelets_lease_without_a_time,
    "no right to read nodes": partial(forbidden, "nodes"),
    "no right to read the node's Lease": partial(forbidden, "leases"),
    "no right to read pods": partial(forbidden, "pods"),
}


@pytest.mark.parametrize("happens", NOT_EARLY.values(), ids=NOT_EARLY)
def test_otherwise_the_lease_has_to_expire(world: World, happens: Any) -> None:
    _, second = world.rivals()
    happens(world, pod(1))
    assert world.seconds_until_taken(second) == pytest.approx(15.0, abs=0.11)


def test_missing_permissions_are_tried_once(world: World) -> None:
    _, second = world.rivals()
    forbidden("nodes", world, pod(1))
    world.seconds_until_taken(second)
    assert len([e for e in world.api.log if e.request.plural == "nodes" and e.code == 403]) == 1


@pytest.mark.parametrize(
    ("skew", "early"), [(-15.0, True), (0.0, True), (15.0, True), (60.0, False), (-60.0, False)]
)
def test_wall_clocks_may_differ_a_little(world: World, skew: float, early: bool) -> None:
    """Only the kubelet's time stamp is compared with our wall clock; too far apart means to wait."""
    first, second = world.start("first", pod(1)), world.start("second", pod(2), skew=skew)
    first._attempt()
    world.delete_pod(pod(1))
    assert (world.seconds_until_taken(second) == EARLY) is early


def test_a_process_that_outlives_its_pod_and_renews_keeps_the_lease(world: World) -> None:
    first, second = world.rivals()
    world.delete_pod(pod(1))
    assert world.seconds_until_taken(second, others=(first,)) == float("inf")
    assert first.is_leader()


def test_a_process_that_outlives_its_pod_unnoticed_changes_no_members(world: World) -> None:
    """It is cut off from the API server, but perhaps not from etcd."""
    first, second = world.rivals()
    assert first.leads_for(CALL)
    world.delete_pod(pod(1))
    world.clock.advance(1.0)
    assert first.leads_for(CALL)  # a call that begins now ends before anybody else leads
    world.clock.advance(0.1)
    assert not world.asked(first)
    assert world.seconds_until_taken(second) == pytest.approx(EARLY, abs=0.11)
    assert first.is_leader(), "this test is about one that has not noticed"


def test_the_pod_of_a_silent_holder_must_have_been_deleted_for_as_long(world: World) -> None:
    _, second = world.rivals()
    second._attempt()
    world.clock.advance(2 * EARLY)
    second._attempt()
    assert not second.is_leader(), "its pod is there"
    world.delete_pod(pod(1))
    assert world.seconds_until_taken(second) == pytest.approx(EARLY, abs=0.6)


def test_the_moment_at_which_it_may_be_acquired_is_not_missed(world: World) -> None:
    _, second = world.rivals()
    world.delete_pod(pod(1))
    second._attempt()
    moment = world.clock.monotonic() + EARLY
    world.clock.advance(EARLY - 0.2)
    second._attempt()
    assert second._lock.due == pytest.approx(moment)


def test_who_has_acquired_the_lease_renews_at_the_usual_pace(world: World) -> None:
    _, second = world.rivals()
    world.delete_pod(pod(1))
    world.seconds_until_taken(second)
    second._attempt()
    assert second.is_leader()
    assert second._lock.due is None


def test_a_holder_without_a_pod_leads_until_its_deadline(world: World) -> None:
    """Nobody takes its lease early: the margin after its deadline is there for the longest call."""
    alone = world.start("alone", None)
    alone._attempt()
    world.clock.advance(9.9)
    assert alone.leads_for(CALL)
    world.clock.advance(0.1)
    assert not alone.leads_for(CALL)


def test_an_elector_that_does_not_lead_does_not_renew(world: World) -> None:
    _, second = world.rivals()
    before = len(world.api.log)
    assert not second.leads_for(CALL)
    assert len(world.api.log) == before


def test_leads_for_renews_at_once(world: World) -> None:
    first = world.start("first", pod(1))
    first.start()
    eventually(first.is_leader)
    eventually(lambda: world.clock.waiting == 2)
    world.clock.advance(1.5)
    eventually(lambda: world.clock.waiting == 2)
    before = world.lease()["renewTime"]
    assert first.leads_for(CALL)
    assert world.lease()["renewTime"] != before
    eventually(lambda: world.clock.waiting == 2)  # once: it waits as before
    assert first.stop(30)


def test_a_leader_whose_renewal_hangs_does_not_lead_for_long_enough(world: World) -> None:
    first, stall = world.start("first", pod(1)), Stall()
    first.start()
    eventually(first.is_leader)
    eventually(lambda: world.clock.waiting == 2)
    held: list[Request] = []

    def hold(request: Request) -> Stall:
        held.append(request)
        return stall

    world.api.before = hold
    world.clock.advance(1.5)
    answers: list[bool] = []
    asking = threading.Thread(target=lambda: answers.append(first.leads_for(CALL)))
    asking.start()
    # The renewal waits until it is asked for: only after that are the deadline and the asking thread the two.
    eventually(lambda: held)
    eventually(lambda: world.clock.waiting == 2)
    world.clock.advance(1.1)
    asking.join(30)
    assert answers == [False]
    assert first.is_leader()
    stall.released.set()
    assert first.stop(30)


def test_a_lost_reply_does_not_extend_leadership(world: World) -> None:
    first = world.start("first", pod(1))
    first._attempt()
    world.clock.advance(1.1)
    world.api.after = lambda request: Cut() if request.is_write else None
    first._attempt()
    world.api.after = no_fault
    assert not world.asked(first)


def test_the_annotations_of_others_are_kept(world: World) -> None:
    first = world.start("first", pod(1))
    first._attempt()
    world.api.objects.patch(LEASES, *KEY, {"metadata": {"annotations": {"team": "db"}}}, "merge")
    first._attempt()
    annotations = world.api.objects.get(LEASES, *KEY)["metadata"]["annotations"]
    assert annotations["team"] == "db"
    assert json.loads(annotations[HOLDER_ANNOTATION])["identity"] == "first"
    assert first.release()
    assert world.api.objects.get(LEASES, *KEY)["metadata"]["annotations"] == {"team": "db"}
