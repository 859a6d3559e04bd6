"""The only survivor of a lost majority has restarted: it answers nobody, and its data is read in its pod."""

import time

import pytest

from e2e.support.checks import assert_consistent
from e2e.support.clusters import ephemeral, persistent
from e2e.support.space import Space
from e2e.support.waiting import wait_until
from e2e.test_quorum_lost import (
    annotate,
    available,
    await_recovered,
    held,
    lose,
    lose_volumes,
    names,
    restart,
    written,
)
from etcd_operator.kube import resources


def test_a_persistent_survivor_that_restarted_is_read_and_recovered_from_by_name(space: Space) -> None:
    """Power is lost and one disk is left: its etcd answers nobody, and has all that was acknowledged."""
    document, before, writer = written(space, persistent())
    lose_volumes(space, document, "my-cluster-0", "my-cluster-1")
    (survivor,) = space.names(resources.PODS, "etcd.improbable.io/peer-name=my-cluster-2")
    restart(space, survivor)

    name, began = f"{before}/my-cluster-2/1", time.monotonic()
    wait_until(
        lambda: "read from its data" in held(space, document)["message"], lambda: f"{held(space, document)}"
    )
    assert name in held(space, document)["message"]
    print(f"offered {time.monotonic() - began:.2f} s after the restart")
    annotate(space, name)
    space.wait_for(document, lambda: available(space, document) == "True", "it serves")
    print(f"served again {time.monotonic() - began:.2f} s after the restart")
    space.wait_settled(document)
    writer.verify()
    assert space.status(document)["recovery"]["source"]["sha256"]


@pytest.mark.long
def test_an_ephemeral_survivor_that_restarted_is_recovered_from_by_itself(space: Space) -> None:
    document, before, writer = written(space, ephemeral())
    lose(space, document, 0, 1, restarted=2)
    await_recovered(space, document)
    writer.verify()

    assert assert_consistent(space, document) != before
    source = space.status(document)["recovery"]["source"]
    assert (source["type"], source["name"]) == ("OfflineSurvivor", names(2)[0])
