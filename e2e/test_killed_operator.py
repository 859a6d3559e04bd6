"""The operator is killed five times at random while it creates, restores, takes over or secures clusters."""

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from e2e.support.backups import OF_ONE_CLUSTER, await_backup
from e2e.support.checks import assert_at_rest, assert_consistent, assert_nothing_doubled
from e2e.support.clusters import ephemeral, persistent
from e2e.support.external import external
from e2e.support.load import Load
from e2e.support.operators import Operator
from e2e.support.resizing import settle
from e2e.support.space import Space
from e2e.support.waiting import hold_for, wait_until
from e2e.test_adopt import adopted
from e2e.test_backups import ON_CLAIM, backup, wait_phase, with_a_key
from e2e.test_disaster import deleted
from e2e.test_losses import assert_reported
from e2e.test_quorum_lost import NAME, names
from e2e.test_restores import assert_restored, completed, lose_everything, restore
from e2e.test_tls import SECURED

pytestmark = pytest.mark.exclusive

KILLS = 5
MOST_SECONDS = 6.0
"""Between two kills; half of it is about what the operator needs until it leads again."""
MOST_OF_A_CREATION = 1.5


@contextmanager
def creation(space: Space) -> Iterator[None]:
    documents = [space.create(ephemeral("ephemeral")), space.create(persistent("persistent"))]
    yield
    for document in documents:
        space.wait_serving(document)
        space.wait_settled(document)
        assert_consistent(space, document)
        assert_nothing_doubled(space, document)


@contextmanager
def restore_to_a_new_cluster(space: Space) -> Iterator[None]:
    with_a_key(space)
    with Load(lambda: space.addresses(persistent(replicas=1))) as load:
        load.go_on()
        space.kubectl.create(backup("one", ON_CLAIM))
        revision = wait_phase(space, "one", "Completed")["revision"]
    lose_everything(space)
    space.kubectl.create(restore("back", {"backupName": "one"}))
    yield
    completed(space, "back")
    document = assert_restored(space, "back", 3)
    load.judge(space.testbed, space.addresses(document), revision)
    assert_nothing_doubled(space, document)


@contextmanager
def recovery_from_a_backup(space: Space) -> Iterator[None]:
    document = space.settled(ephemeral(backup=OF_ONE_CLUSTER))
    with Load(lambda: space.addresses(document)) as load:
        load.go_on()
        revision = await_backup(space, NAME, load.newest)
        wait_until(lambda: load.newest > revision, "writes that no backup has")
        space.kubectl("delete", "pod", *names(0, 1, 2), "--now", "--wait=false")
        yield
        wait_until(lambda: "recovery" in space.status(document), "a recovery has begun")
        space.wait_serving(document)
        space.wait_settled(document)
    assert space.status(document)["recovery"]["revision"] >= revision
    assert_reported(space, document, load, "RecoveredFromBackup")


@contextmanager
def restore_at_creation(space: Space) -> Iterator[None]:
    load, revision = deleted(space, OF_ONE_CLUSTER)
    space.wait_no_pods()
    document = space.create(ephemeral("new", restore={"backupClusterName": "old"}))
    yield
    settle(space, document)
    restored = space.status(document)["recovery"]["revision"]
    assert restored >= revision
    load.judge(space.testbed, space.addresses(document), restored)
    assert_consistent(space, document)
    assert_nothing_doubled(space, document)


@contextmanager
def adoption(space: Space) -> Iterator[None]:
    theirs = external(space, 1)
    with adopted(space, theirs, persistent(adopt={"endpoints": theirs.endpoints})):
        yield


@contextmanager
def tls_and_users(space: Space) -> Iterator[None]:
    """Clusters that run get all of it at once: that takes several restarts of each member."""
    documents = [space.settled(kind(kind.__name__)) for kind in (ephemeral, persistent)]
    for document in documents:
        document["spec"] |= SECURED
        space.kubectl.apply(document)
    yield
    for document in documents:
        space.wait_observed(document)
        space.wait_condition(document, "AuthenticationEnabled", "Enabled")
        settle(space, document)
        assert_consistent(space, document)
        assert_nothing_doubled(space, document)


WORKFLOWS = (restore_to_a_new_cluster, recovery_from_a_backup, restore_at_creation, adoption, tls_and_users)


@pytest.mark.parametrize(
    ("workflow", "most"),
    [
        pytest.param(creation, MOST_OF_A_CREATION, id="creation"),
        *(pytest.param(each, MOST_SECONDS, id=each.__name__, marks=pytest.mark.long) for each in WORKFLOWS),
    ],
)
def test_an_operator_killed_five_times_ends_what_was_begun(
    space: Space,
    operator: Operator,
    workflow: Callable[[Space], AbstractContextManager[None]],
    most: float,
) -> None:
    seed = int(os.environ.get("ETCD_OPERATOR_E2E_SEED") or time.time())
    print(f"seed: ETCD_OPERATOR_E2E_SEED={seed}")
    chance = random.Random(seed)
    with workflow(space):
        for _ in range(KILLS):
            hold_for(chance.uniform(0.0, most), lambda: True, "the operator works", every=0.01)
            operator.kill()
        operator.wait_ready()
    assert_at_rest(space, 12)
