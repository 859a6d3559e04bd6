"""`spec.recovery: Automatic`: members that hang for the time are given up without a person."""

from typing import Any

import pytest

from e2e.support.checks import assert_consistent
from e2e.support.clusters import ephemeral, persistent, size_of
from e2e.support.space import Space
from e2e.support.status import condition
from e2e.support.waiting import LONG, wait_until
from etcd_operator.kube import resources

AUTOMATIC: dict[str, Any] = {"recovery": "Automatic", "recoveryAfterSeconds": 10}


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(persistent, id="persistent", marks=pytest.mark.capability("recover automatically")),
        pytest.param(ephemeral, id="ephemeral", marks=pytest.mark.long),
    ],
)
def test_members_that_hang_for_the_time_are_given_up(space: Space, kind: Any) -> None:
    space.require_local("the processes of this cluster are not ours to stop")
    document = space.created(kind(**AUTOMATIC))
    name = document["metadata"]["name"]
    space.wait_settled(document)
    before = assert_consistent(space, document)
    given_up = [pod["metadata"]["name"] for pod in space.pods(document)][:2]
    with space.frozen(*given_up):
        wait_until(
            lambda: "a recovery begins by itself after 10 s" in held(space, document),
            LONG,
            lambda: f"the loss is reported: {space.status(document)}",
        )
        assert "recovery" not in space.status(document)
        wait_until(
            lambda: space.status(document)["clusterID"] != before,
            LONG,
            lambda: f"it is recovered: {space.status(document)}",
        )
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
