"""`spec.recovery: Automatic`: members that hang for the time are given up without a person."""

from typing import Any

import pytest

from e2e.support.checks import assert_consistent
from e2e.support.clusters import each_kind, size_of
from e2e.support.space import Space
from e2e.support.status import condition
from etcd_operator.kube import resources

AUTOMATIC: dict[str, Any] = {"recovery": "Automatic", "recoveryAfterSeconds": 10}


@each_kind(ephemerals=pytest.mark.long, persistents=pytest.mark.capability("recover automatically"))
def test_members_that_hang_for_the_time_are_given_up(space: Space, kind: Any) -> None:
    space.require_local("the processes of this cluster are not ours to stop")
    document = space.created(kind(**AUTOMATIC))
    name = document["metadata"]["name"]
    space.wait_settled(document)
    before = assert_consistent(space, document)
    given_up = [pod["metadata"]["name"] for pod in space.pods(document)][:2]
    with space.frozen(*given_up):
        space.wait_for(
            document,
            lambda: "a recovery begins by itself after 10 s" in held(space, document),
            "the loss is reported",
        )
        assert "recovery" not in space.status(document)
        space.wait_for(document, lambda: space.status(document)["clusterID"] != before, "it is recovered")
        assert not set(given_up) & selected(space, name), "clients no longer reach who was given up"
    status = space.status(document)
    assert (status["recovery"]["authority"], status["recovery"]["replaces"]) == ("Automatic", before)
    loss = condition(space.stored(document), "DataLossPossible")["message"]
    assert "started automatically" in loss
    space.wait_settled(document)
    assert len(space.pods(document)) == size_of(document)
    assert assert_consistent(space, document) == status["clusterID"]
    space.wait_events(
        name, *[("Warning", reason) for reason in ("QuorumLost", "RecoveryStarted", "Recovered")]
    )


def held(space: Space, document: Any) -> str:
    return str(condition(space.stored(document), "Degraded")["message"])


def selected(space: Space, name: str) -> set[str]:
    """The pods that the Service for clients selects."""
    found = space.api.all_of(resources.SERVICES, space.namespace)
    (selector,) = (s["spec"]["selector"].items() for s in found if s["metadata"]["name"] == name)
    pods = [pod["metadata"] for pod in space.api.all_of(resources.PODS, space.namespace)]
    return {pod["name"] for pod in pods if selector <= pod["labels"].items()}
