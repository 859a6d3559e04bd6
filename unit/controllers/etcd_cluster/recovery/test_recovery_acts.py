"""What a recovery makes sure live, right before it acts: a world that differs is left alone."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from etcd_operator.api import coreos
from etcd_operator.api.recoveries import REVISION_BUMP, Recovery, Survivor
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import (
    ConfirmLoss,
    DropEmpty,
    OpenSeed,
    RetireMember,
    SetSeedExistingOnly,
)
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.dialects.coreos import CoreosDialect
from etcd_operator.controllers.etcd_cluster.members.ephemeral import EphemeralMembers
from etcd_operator.controllers.etcd_cluster.members.pod_facts import pod_facts
from etcd_operator.controllers.etcd_cluster.members.protocol import Scope
from etcd_operator.decoding import from_json
from etcd_operator.errors import Conflict, Invalid, OperatorError
from etcd_operator.etcd.channel import Channels
from etcd_operator.kube.pod_views import Pod
from unit.controllers.etcd_cluster.dialects.builders import DEFAULTS
from unit.fakes.apiserver.faults import Fault, Request
from unit.fakes.apiserver.kinds import PODS
from unit.passes.bench import Bench, bootstrapped
from unit.passes.bodies import COREOS, ephemeral
from unit.passes.harness import objects_of
from unit.passes.quorum_losses import lose
from unit.passes.recoverers import recoverer
from unit.passes.tools import OWN_IMAGE, readers_of

OLD, NEW = "c0de", "feed"
RECOVERY = Recovery(
    generation=1,
    source=Survivor(name="c-0002"),
    authority="Proven",
    revision=2,
    version="3.6.16",
    seed="c-0003",
    token="t-1",
    replaces=OLD,
)


@pytest.fixture
def made() -> Iterator[Bench]:
    """Three members; the operator is dead, so that a test may act in its place."""
    with bootstrapped(*ephemeral(size=3)) as made:
        made.kill()
        yield made


class Acts:
    """A recoverer on the world as the operator saw it, which is when this was made."""

    def __init__(
        self, made: Bench, channels: Channels, recovery: Recovery | None = None, *, cluster_id: str = ""
    ) -> None:
        cluster = from_json(msgspec.json.encode(made.get(COREOS)), coreos.EtcdCluster)
        dialect = CoreosDialect(DEFAULTS)
        desired = dialect.desired(cluster)
        if recovery is not None:
            desired = _with(desired, recovery)
        if cluster_id:
            desired = replace(desired, persisted=replace(desired.persisted, cluster_id=cluster_id))
        self.reported: list[str] = []
        self.refused: list[tuple[str, str]] = []
        self.has_lasted = False
        self.uids = {p["metadata"]["name"]: p["metadata"]["uid"] for p in made.api.objects.select(PODS)}
        pods = [msgspec.convert(pod, Pod) for pod in made.api.objects.select(PODS)]
        now = datetime.now(UTC)
        members = tuple(
            Member(name=pod.metadata.name, has_service=True, pod=pod_facts(pod, now=now)) for pod in pods
        )
        scope = Scope(
            objects=objects_of(made.api),
            state=ClusterState(desired=desired, members=members),
            report=lambda reason, _: self.reported.append(reason),
            now=datetime.now(UTC),
        )
        readers = readers_of(
            made.etcds.read,
            lambda pod, why: self.refused.append((pod.uid, why)),
            lambda *_: self.has_lasted,
        )
        self._recoverer = recoverer(
            scope, EphemeralMembers(scope, lambda: OWN_IMAGE), dialect, channels, readers
        )

    def confirm(self, *gone: str, backup: int = 0, silent: tuple[str, ...] = ()) -> None:
        left = {name: uid for name, uid in self.uids.items() if name not in (*gone, *silent)}
        loss = ConfirmLoss(
            gone=gone, survivors=tuple(left.items()), message="lost", below=backup, silent=silent
        )
        self._recoverer.act(loss)

    def act(self, action: Any) -> None:
        self._recoverer.act(action)

    def assert_leaderless(self, seed: str) -> None:
        """The last check of the members that are given up without a proof."""
        self._recoverer.proofs.assert_leaderless(seed)

    def assert_as_read(self) -> None:
        """The last check of a survivor that was read, right before the others are given up."""
        self._recoverer.proofs.assert_as_read()


def _with(desired: Any, recovery: Recovery) -> Any:
    return replace(desired, persisted=replace(desired.persisted, recovery=recovery))


def test_only_a_pod_that_has_no_node_live_is_removed_as_such(made: Bench, channels: Channels) -> None:
    acts = Acts(made, channels)
    with pytest.raises(Conflict, match="c-0002 has a node by now"):
        acts.act(DropEmpty(name="c-0002"))
    lose(made, 2)
    acts.act(DropEmpty(name="c-0002"))
    made.world.up.clear()
    made.start()
    made.run_until(lambda: "c-0003" in made.names(PODS))
    made.kill()
    acts = Acts(made, channels)

    def assign(request: Request) -> Fault | None:
        if request.method == "DELETE":
            made.edit(PODS, "c-0003", {"metadata": {"annotations": {"changed": "meanwhile"}}})
        return None

    before, made.api.before = made.api.before, assign
    with pytest.raises(Conflict):
        acts.act(DropEmpty(name="c-0003"))
    made.api.before = before
    acts.act(DropEmpty(name="c-0003"))
    assert "c-0003" not in made.names(PODS)
    assert acts.reported == ["PodRemoved"]


def test_a_loss_that_is_true_is_confirmed_and_reported(made: Bench, channels: Channels) -> None:
    lose(made, 0)
    made.world.fail("default", "c-0001")
    acts = Acts(made, channels)
    acts.confirm("c-0000", "c-0001")
    assert acts.reported == ["QuorumLost"]


def test_a_pod_that_the_cache_had_not_seen_is_no_loss(made: Bench, channels: Channels) -> None:
    lose(made, 0)
    acts = Acts(made, channels)
    with pytest.raises(Conflict, match="c-0001 still exists"):
        acts.confirm("c-0000", "c-0001")
    assert acts.reported == []


def test_a_survivor_that_has_caught_up_with_the_backup_is_not_given_up(
    made: Bench, channels: Channels
) -> None:
    lose(made, 0, 1)
    acts, revision = Acts(made, channels), made.etcd.etcd.revision
    with pytest.raises(Conflict, match="c-0002 has reached revision 2 by now"):
        acts.confirm("c-0000", "c-0001", backup=revision)
    acts.confirm("c-0000", "c-0001", backup=revision + 1)
    assert acts.reported == ["QuorumLost"]


def test_a_silent_member_is_given_up_only_while_nobody_follows_a_leader(
    made: Bench, channels: Channels
) -> None:
    acts = Acts(made, channels)
    with pytest.raises(Conflict, match="c-0002 follows a leader"):
        acts.confirm(silent=("c-0000", "c-0001"))
    for name in ("c-0000", "c-0001"):
        made.etcd.etcd.freeze(name)
    acts.confirm(silent=("c-0000", "c-0001"))
    assert acts.reported == ["QuorumLost"]


def test_a_survivor_that_is_going_is_none(made: Bench, channels: Channels) -> None:
    lose(made, 0, 1)
    acts = Acts(made, channels)
    made.edit(PODS, "c-0002", {"metadata": {"finalizers": ["example.com/held"]}})
    made.delete(PODS, "c-0002")
    with pytest.raises(Conflict, match="c-0002 has changed since it was observed"):
        acts.confirm("c-0000", "c-0001")


def test_a_survivor_that_is_another_pod_now_is_none(made: Bench, channels: Channels) -> None:
    lose(made, 0, 1)
    acts = Acts(made, channels)
    acts.uids["c-0002"] = "another"
    with pytest.raises(Conflict, match="c-0002 has changed since it was observed"):
        acts.confirm("c-0000", "c-0001")


def test_a_survivor_whose_own_list_has_a_majority_that_may_live_forbids_a_recovery(
    made: Bench, channels: Channels
) -> None:
    lose(made, 0, 1)
    acts = Acts(made, channels)
    etcd = made.etcd.etcd
    with etcd.changed:
        etcd.members[:] = [each for each in etcd.members if each.name != "c-0001"]
        etcd.members[0].name = "c-0009"
    with pytest.raises(Conflict, match="may still elect a leader"):
        acts.confirm("c-0000", "c-0001")


FOREIGN = msgspec.structs.replace(RECOVERY, replaces="0")


@pytest.mark.parametrize(
    ("recovery", "revision", "is_alone"),
    [
        pytest.param(RECOVERY, 0, True, id="the old cluster"),
        pytest.param(FOREIGN, 2 + REVISION_BUMP, True, id="too little data"),
        pytest.param(FOREIGN, 0, False, id="not alone in its cluster"),
    ],
)
def test_a_seed_that_does_not_serve_alone_what_was_saved_replaces_nobody(
    made: Bench, channels: Channels, recovery: Recovery, revision: int, is_alone: bool
) -> None:
    acts = Acts(made, channels, recovery)
    etcd = made.etcd.etcd
    if is_alone:
        with etcd.changed:
            etcd.members[:] = [each for each in etcd.members if each.name == "c-0002"]
    pods, before = made.names(PODS), made.get(PODS, "c-0002")
    with pytest.raises(Conflict, match="does not serve the recovered data"):
        acts.act(SetSeedExistingOnly(name="c-0002", revision=revision))
    if not revision:
        with pytest.raises(Conflict, match="does not serve the recovered data"):
            acts.act(RetireMember(name="c-0000", seed="c-0002"))
    made.world.settle()
    assert (made.names(PODS), made.get(PODS, "c-0002")) == (pods, before)


def test_the_source_is_kept_without_the_label_by_which_clients_reach_it(
    made: Bench, channels: Channels
) -> None:
    acts = Acts(made, channels, FOREIGN)
    etcd = made.etcd.etcd
    with etcd.changed:
        etcd.members[:] = [each for each in etcd.members if each.name == "c-0002"]
    acts.act(RetireMember(name="c-0000", seed="c-0002", keeps_data=True))
    kept = made.get(PODS, "c-0000")["metadata"]
    assert ("app" in kept["labels"], "deletionTimestamp" in kept) == (False, False)


def test_a_pod_that_has_taken_the_seeds_name_is_not_edited(made: Bench, channels: Channels) -> None:
    acts = Acts(made, channels, RECOVERY)
    pod = made.get(PODS, "c-0002")
    lose(made, 2)
    meta = {"name": "c-0002", "labels": {"etcd_cluster": "c"}}
    made.api.objects.create(PODS, "default", {"metadata": meta, "spec": pod["spec"]})
    with pytest.raises((Conflict, Invalid)):
        acts.act(OpenSeed(name="c-0002"))
    assert made.get(PODS, "c-0002")["metadata"]["labels"] == {"etcd_cluster": "c"}


@pytest.mark.parametrize(
    ("recorded", "refusal"),
    [
        pytest.param(OLD, "c-000[01] answers again", id="of the old cluster"),
        pytest.param("beef", None, id="of another one"),
    ],
)
def test_an_automatic_recovery_ends_no_quorum_that_only_a_live_list_shows(
    made: Bench, channels: Channels, recorded: str, refusal: str | None
) -> None:
    """All are silent by the caches, which have addresses that the pods had before."""
    recovery = msgspec.structs.replace(RECOVERY, seed="c-0002", replaces=recorded, authority="Automatic")
    acts = Acts(made, channels, recovery, cluster_id=recorded)
    if refusal is None:
        acts.assert_leaderless("c-0002")
        return
    with pytest.raises(Conflict, match=refusal):
        acts.assert_leaderless("c-0002")


@pytest.mark.parametrize("action", [OpenSeed(name="c-0009"), SetSeedExistingOnly(name="c-0009", revision=0)])
def test_a_seed_that_is_gone_is_neither_set_existing_only_nor_opened(
    made: Bench, channels: Channels, action: Any
) -> None:
    with pytest.raises(OperatorError, match="c-0009 has no"):
        Acts(made, channels, RECOVERY).act(action)
