"""Problems around a cluster are reported in its conditions, delay no other cluster and end by themselves."""

import json

import pytest

from e2e.support.alarms import disarm, raise_corrupt, raise_no_space
from e2e.support.checks import assert_consistent
from e2e.support.clusters import COREOS, IMPROBABLE, ephemeral, persistent
from e2e.support.resizing import member_ids, members_of, settle
from e2e.support.shell import etcdctl_in_member
from e2e.support.space import Space
from e2e.support.status import condition
from e2e.support.waiting import hold_for, wait_until
from etcd_operator.api import coreos, improbable
from etcd_operator.kube import resources

KINDS = {COREOS: "etcdcluster.coreos.com", IMPROBABLE: "etcdcluster.etcd.improbable.io"}

SERVES = coreos.POD_KEYS.serves


def test_an_image_that_does_not_exist_is_named_and_other_clusters_are_served(space: Space) -> None:
    broken = space.create(ephemeral("broken", version="3.6.99"))
    held = space.wait_condition(broken, "Degraded", "ErrImagePull", "ImagePullBackOff")
    assert "3.6.99" in held["message"] or "broken-000" in held["message"], held
    healthy = space.created(ephemeral("healthy", size=1))
    assert_consistent(space, healthy)
    assert space.status(broken)["phase"] == "Creating"
    assert "ImagePull" in space.kubectl("describe", KINDS[COREOS], "broken")

    fixed = {"spec": {"version": "3.6.16"}}
    space.kubectl("patch", KINDS[COREOS], "broken", "--type=merge", "-p", json.dumps(fixed))
    space.wait_serving(broken)
    space.wait_settled(broken)
    assert members_of(space, broken) == [f"broken-000{number}" for number in range(3)]


def test_a_full_store_is_reported_and_keeps_nobody_from_being_replaced(space: Space) -> None:
    document = space.settled(ephemeral(name="full"))
    cluster_id = assert_consistent(space, document)
    address, member_id = space.addresses(document)[1], int(member_ids(space, document)["full-0001"], 16)
    raise_no_space(address, member_id)
    held = space.wait_condition(document, "Degraded", "OutOfSpace")
    assert "alarm disarm" in held["message"]
    space.wait_available(document)

    space.kubectl("delete", "pod", "full-0000", "--wait=false")
    wait_until(lambda: "full-0003" in members_of(space, document), "a new member takes its place")
    space.wait_serving(document)
    space.wait_condition(document, "Degraded", "OutOfSpace")
    wait_until(
        lambda: {condition(pod, SERVES)["status"] for pod in space.pods(document)} == {"True"}, "all serve"
    )

    assert (cleared := disarm(address)) == 1, f"{cleared} alarms"
    settle(space, document)
    assert assert_consistent(space, document) == cluster_id


def test_a_member_with_corrupt_data_is_replaced_and_writes_are_taken_again(space: Space) -> None:
    document = space.settled(ephemeral(name="corrupt"))
    cluster_id = assert_consistent(space, document)
    raise_corrupt(space.addresses(document)[0], int(member_ids(space, document)["corrupt-0001"], 16))
    wait_until(lambda: "corrupt-0003" in members_of(space, document), "a new member takes its place")
    settle(space, document)
    assert "corrupt-0001" not in members_of(space, document)
    assert (left := disarm(space.addresses(document)[0])) == 0, f"{left} alarms are left"
    assert assert_consistent(space, document) == cluster_id


def test_members_stay_ready_where_authentication_is_switched_on(space: Space) -> None:
    document = space.settled(persistent("locked", replicas=1))
    (pod,) = space.pods(document)

    def etcdctl(*arguments: str) -> None:
        etcdctl_in_member(space, pod["metadata"]["name"], *arguments)

    etcdctl("user", "add", "root:secret")
    etcdctl("user", "grant-role", "root", "root")
    etcdctl("auth", "enable")
    held = space.wait_condition(document, "Degraded", "AuthEnabled")
    assert "etcdctl auth disable" in held["message"]
    space.wait_available(document)
    space.kubectl("delete", "etcdpeers.etcd.improbable.io", "locked-0", "--wait=false")
    serves = improbable.POD_KEYS.serves

    def is_back() -> bool:
        pods = [each for each in space.pods(document) if each["metadata"]["uid"] != pod["metadata"]["uid"]]
        return [condition(each, serves).get("status") for each in pods] == ["True"]

    wait_until(is_back, "the peer is made again and serves")
    (pod,) = space.pods(document)
    etcdctl("--user=root:secret", "auth", "disable")
    settle(space, document)
    assert_consistent(space, document)


def test_a_storage_class_that_comes_late_lets_the_cluster_go_on(space: Space) -> None:
    late = f"late-{space.namespace}"
    document = space.create(persistent(replicas=1, storage_class=late))
    held = space.wait_condition(document, "Degraded", "Unschedulable", "ClaimPending")
    assert held["message"]
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": late},
        "provisioner": "kubernetes.io/host-path",
    }
    try:
        space.kubectl.apply(storage_class)
        space.wait_serving(document)
        space.wait_settled(document)
    finally:
        space.kubectl("delete", "storageclass", late, check=False)


def test_a_node_selector_that_fits_nothing_is_unschedulable_until_a_node_gets_the_label(space: Space) -> None:
    label = f"e2e.example.com/{space.namespace}"
    document = space.create(ephemeral(size=1, nodeSelector={label: "yes"}))
    space.wait_condition(document, "Degraded", "Unschedulable")
    node = space.kubectl.json("get", "nodes")["items"][0]["metadata"]["name"]
    try:
        space.kubectl("label", "node", node, f"{label}=yes")
        space.wait_serving(document)
        space.wait_settled(document)
        assert [pod["spec"]["nodeName"] for pod in space.pods(document)] == [node]
    finally:
        space.kubectl("label", "node", node, f"{label}-", check=False)


def test_of_two_clusters_of_one_name_the_younger_waits_until_the_older_is_gone(space: Space) -> None:
    older = space.created(persistent("same", replicas=1))
    younger = space.create(ephemeral("same", size=1))
    held = space.wait_condition(younger, "Degraded", "NameConflict")
    assert "same" in held["message"], held
    hold_for(2, lambda: not space.pods(younger), "the younger makes nothing", every=0.5)
    assert_consistent(space, older)

    space.kubectl("delete", KINDS[IMPROBABLE], "same")
    space.wait_serving(younger)
    assert_consistent(space, younger)
    assert space.names(resources.CLAIMS) == ["same-0"]


@pytest.mark.parametrize("is_settled", [True, False], ids=["settled", "in-the-middle-of-a-creation"])
def test_a_namespace_with_clusters_of_both_groups_is_deleted(space: Space, is_settled: bool) -> None:
    """Nothing in it holds up the deletion, and nothing outlives it."""
    for document in (ephemeral(), persistent()):
        space.settled(document) if is_settled else space.create(document)
    wait_until(lambda: space.names(resources.PODS), "the first pod is there")
    space.kubectl("delete", "namespace", space.namespace, "--wait=false")
    wait_until(
        lambda: "NotFound" in space.kubectl("get", "namespace", space.namespace, check=False),
        "the namespace is deleted",
        every=1.0,
    )
    assert [space.names(kind) for kind in (resources.PODS, resources.CLAIMS)] == [[], []]
