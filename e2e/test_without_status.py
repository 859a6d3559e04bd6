"""Resources without a status beside their members: created again, or restored by a backup tool."""

from typing import Any

from e2e.support.api import LABELS
from e2e.support.checks import assert_consistent, assert_nothing_doubled
from e2e.support.clusters import Document, each_kind, ephemeral, persistent
from e2e.support.resizing import kind_of, written_to
from e2e.support.space import Space
from e2e.support.waiting import wait_until
from etcd_operator.kube import resources
from etcd_operator.kube.resources import Resource
from localcluster.kubectl import as_stream

OWNED = (resources.PEERS, resources.REPLICA_SETS, resources.SERVICES, resources.BUDGETS)
GIVEN = ("clusterIP", "clusterIPs", "nodeName")
"""What Kubernetes adds to a spec, and a backup tool leaves out."""


@each_kind()
def test_a_resource_that_was_deleted_without_its_members_takes_them_over_while_they_serve(
    space: Space, kind: Any
) -> None:
    document = space.settled(kind())
    pods = [pod["metadata"]["uid"] for pod in space.pods(document)]
    with written_to(space, document):
        space.kubectl("delete", kind_of(document), document["metadata"]["name"], "--cascade=orphan")
        space.kubectl("apply", "-f", "-", stdin=as_stream(document))
        space.wait_settled(document)
    assert [pod["metadata"]["uid"] for pod in space.pods(document)] == pods
    assert_nothing_doubled(space, document)
    space.wait_events(document["metadata"]["name"], ("Normal", "OwnerRestored"))
    space.kubectl("delete", kind_of(document), document["metadata"]["name"])
    space.wait_no_pods()


def test_a_persistent_cluster_that_a_backup_tool_restored_serves_its_data(space: Space) -> None:
    """The claims stand for those that the tool restores with their volumes."""
    document = space.settled(persistent())
    space.put(document, b"key", b"value")
    restore(space, document, *OWNED)
    space.wait_serving(document)
    space.wait_settled(document)
    assert space.values(document, b"key") == [b"value"] * 3
    assert_nothing_doubled(space, document)
    assert_consistent(space, document)


def test_an_ephemeral_cluster_that_a_backup_tool_restored_begins_again_as_its_message_says(
    space: Space,
) -> None:
    document = space.settled(ephemeral())
    restore(space, document, resources.PODS, resources.SERVICES, resources.BUDGETS)
    message = space.wait_condition(document, "Degraded", "StatusMissing")["message"]
    _, command, _ = message.split("`")
    program, *arguments = command.split()
    assert program == "kubectl"
    space.kubectl(*arguments)
    space.wait_serving(document)
    space.wait_settled(document)
    assert_nothing_doubled(space, document)


def restore(space: Space, document: Document, *kinds: Resource) -> None:
    """Store objects without owners and statuses, delete the cluster, and create all of it again."""
    name = document["metadata"]["name"]
    selector = f"{LABELS[document['apiVersion']]}={name}"
    stored = [
        {"apiVersion": kind.api_version, "kind": kind.kind, **_as_stored(each)}
        for kind in kinds
        for each in space.api.all_of(kind, space.namespace, selector)
    ]
    space.kubectl("delete", kind_of(document), name)
    space.wait_no_pods()
    wait_until(lambda: not any(space.names(kind, selector) for kind in kinds), "all objects are gone")
    for each in stored:
        space.kubectl("apply", "-f", "-", stdin=as_stream(each))
    space.kubectl("apply", "-f", "-", stdin=as_stream(document))


def _as_stored(found: Document) -> Document:
    kept = {
        key: found["metadata"][key] for key in ("name", "labels", "annotations") if key in found["metadata"]
    }
    return {
        "metadata": kept,
        "spec": {key: value for key, value in found["spec"].items() if key not in GIVEN},
    }
