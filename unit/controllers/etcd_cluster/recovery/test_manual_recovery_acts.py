"""What the recovery of persistent members makes sure live: a world that differs is left alone."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

from etcd_operator.api import improbable
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import (
    ConfirmSilence,
    DropSeed,
    OpenSeed,
    RetireMember,
    SetSeedExistingOnly,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import BackupFacts
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.dialects.improbable import ImprobableDialect
from etcd_operator.controllers.etcd_cluster.members.claim_facts import claim_facts, peer_facts
from etcd_operator.controllers.etcd_cluster.members.persistent import PersistentMembers
from etcd_operator.controllers.etcd_cluster.members.pod_facts import pod_facts
from etcd_operator.controllers.etcd_cluster.members.protocol import Scope
from etcd_operator.decoding import from_json
from etcd_operator.errors import Conflict, OperatorError
from etcd_operator.etcd.channel import Channels
from etcd_operator.etcd.client import EtcdClient
from etcd_operator.kube.pod_views import Pod
from etcd_operator.kube.views import Claim
from unit.controllers.etcd_cluster.decide.builders import answer, entry
from unit.controllers.etcd_cluster.dialects.builders import DEFAULTS
from unit.controllers.etcd_cluster.recovery.test_recovery_acts import FOREIGN
from unit.controllers.etcd_cluster.test_protect import pod_of
from unit.fakes.apiserver.faults import Answer
from unit.fakes.apiserver.kinds import CLAIMS, PODS, SERVICES
from unit.passes.bench import PEER_LABEL, Bench, bootstrapped
from unit.passes.bodies import BACKUPS, IMPROBABLE, PEERS, persistent
from unit.passes.harness import objects_of
from unit.passes.jobs import backup
from unit.passes.recoverers import recoverer
from unit.passes.tools import OWN_IMAGE, readers_of

LISTED = tuple(entry(f"c-{number}") for number in range(3))


@pytest.fixture
def made() -> Iterator[Bench]:
    """Three members; the operator is dead, so that a test may act in its place."""
    with bootstrapped(*persistent(size=3)) as made:
        made.kill()
        yield made


class Acts:
    """A recoverer on the world as the operator saw it, which is when this was made; all seemed healthy."""

    def __init__(self, made: Bench, channels: Channels) -> None:
        cluster = from_json(msgspec.json.encode(made.get(IMPROBABLE)), improbable.EtcdCluster)
        dialect = ImprobableDialect(DEFAULTS)
        self.reported: list[str] = []
        desired = dialect.desired(cluster)
        members = tuple(self._member(made, pod) for pod in made.api.objects.select(PODS))
        self.uids = {member.name: member.pod.uid for member in members if member.pod is not None}
        persisted = replace(desired.persisted, recovery=FOREIGN)
        self.state = ClusterState(desired=replace(desired, persisted=persisted), members=members)
        self._made, self._channels, self._dialect = made, channels, dialect

    def _member(self, made: Bench, pod: Any) -> Member:
        name = pod["metadata"]["labels"][PEER_LABEL]
        return Member(
            name=name,
            pod=pod_facts(msgspec.convert(pod, Pod), now=datetime.now(UTC)),
            peer=peer_facts(msgspec.convert(made.get(PEERS, name), improbable.EtcdPeer), {}),
            claim=claim_facts(msgspec.convert(made.get(CLAIMS, name), Claim)),
            answer=answer(name, LISTED, cluster_id="c0de"),
        )

    def act(self, action: Any) -> None:
        scope = Scope(
            objects=objects_of(self._made.api),
            state=self.state,
            report=lambda reason, _: self.reported.append(reason),
            now=datetime.now(UTC),
        )
        readers = readers_of(self._made.etcds.read)
        members = PersistentMembers(scope, image=lambda: OWN_IMAGE, repository=DEFAULTS.repository)
        recoverer(scope, members, self._dialect, self._channels, readers).act(action)

    def confirm(self, name: str, *silent: str) -> None:
        self.act(ConfirmSilence(survivors=((name, self.uids[name]),), message="lost", silent=silent))


def freeze(made: Bench, *names: str) -> None:
    for name in names:
        made.etcd.etcd.freeze(name)


def test_a_silence_that_is_true_is_confirmed_and_reported(made: Bench, channels: Channels) -> None:
    freeze(made, "c-0", "c-1")
    acts = Acts(made, channels)
    acts.confirm("c-2")
    assert acts.reported == ["QuorumLost"]


def test_a_backup_that_only_the_api_server_shows_forbids_a_recovery(made: Bench, channels: Channels) -> None:
    """The cache was complete once, and its watch has failed since: the backup may have newer data."""
    freeze(made, "c-0", "c-1")
    acts = Acts(made, channels)
    acts.state = replace(acts.state, backups=BackupFacts(is_listed=True))
    made.create(*backup("one", source={"clusterName": "c"}))
    acts.confirm("c-2")
    stored = {
        "phase": "Completed",
        "url": "s3://b/one.db",
        "sha256": "ab" * 32,
        "clusterID": "c0de",
        "clusterUID": "uid-of-c",
    }
    made.edit(BACKUPS, "one", {"status": stored}, subresource="status")
    with pytest.raises(Conflict, match="cache does not show EtcdBackup one yet: not recovering"):
        acts.confirm("c-2")
    made.api.before = lambda request: (
        Answer(code=500, reason="InternalError", message="no list")
        if request.plural == "etcdbackups"
        else None
    )
    with pytest.raises(OperatorError, match="no list"):
        acts.confirm("c-2")
    assert acts.reported == ["QuorumLost"]


def test_a_survivor_that_follows_a_leader_after_all_forbids_a_recovery(
    made: Bench, channels: Channels
) -> None:
    acts = Acts(made, channels)
    with pytest.raises(Conflict, match="c-2 follows a leader"):
        acts.confirm("c-2")
    assert acts.reported == []


def test_a_survivor_that_is_another_pod_now_is_none(made: Bench, channels: Channels) -> None:
    freeze(made, "c-0", "c-1")
    acts = Acts(made, channels)
    acts.uids["c-2"] = "another"
    with pytest.raises(Conflict, match="c-2 has changed since it was observed"):
        acts.confirm("c-2")


def test_a_survivor_whose_deletion_does_not_end_is_asked_like_the_others(
    made: Bench, channels: Channels
) -> None:
    """Its node is cut off from the API server: it has less than the one that is recovered from."""
    freeze(made, "c-0", "c-1")
    acts = Acts(made, channels)
    pod = next(p for p in made.api.objects.select(PODS) if p["metadata"]["labels"][PEER_LABEL] == "c-2")
    name = pod["metadata"]["name"]
    made.edit(PODS, name, {"metadata": {"finalizers": ["test/held"]}})
    made.delete(PODS, name)
    assert "deletionTimestamp" in made.get(PODS, name)["metadata"]
    acts.confirm("c-2")
    assert acts.reported == ["QuorumLost"]


def test_a_member_that_is_given_up_without_a_person_is_asked_once_more(
    made: Bench, channels: Channels
) -> None:
    freeze(made, "c-0", "c-1")
    acts = Acts(made, channels)
    acts.confirm("c-2", "c-0", "c-1", "c-2")  # the survivor's own answer is expected
    assert acts.reported == ["QuorumLost"]
    with pytest.raises(Conflict, match="c-2 answers again: not recovering"):
        acts.act(ConfirmSilence(survivors=(), message="lost", silent=("c-0", "c-2")))


@pytest.mark.parametrize("is_as_seen", [True, False], ids=["as it was seen", "in another pod"])
def test_a_member_that_is_given_up_and_answers_forbids_a_recovery(
    made: Bench, channels: Channels, *, is_as_seen: bool
) -> None:
    """With a person, too: the caches may be behind, and show members that answer as silent."""
    acts = Acts(made, channels)
    if not is_as_seen:
        made.delete(PODS, pod_of(made, "c-0")["metadata"]["name"])
        made.world.settle()
    with pytest.raises(Conflict, match="c-0 answers again: not recovering"):
        acts.act(ConfirmSilence(survivors=(), message="lost", given_up=("c-0",)))
    freeze(made, "c-0", "c-1")
    acts.act(ConfirmSilence(survivors=(), message="lost", given_up=("c-0", "c-1")))
    assert acts.reported == ["QuorumLost"]


@pytest.mark.parametrize(
    ("change", "is_counted"),
    [
        pytest.param({}, True, id="a voter"),
        pytest.param({"is_learner": True}, False, id="a learner"),
        pytest.param({"leader": 0}, True, id="without a leader"),
        pytest.param({"cluster_id": 7}, False, id="of another etcd cluster"),
    ],
)
def test_only_a_voter_of_the_cluster_on_record_counts_as_one_that_answers_again(
    made: Bench, channels: Channels, change: dict[str, Any], *, is_counted: bool
) -> None:
    acts = Acts(made, channels)
    status = EtcdClient.status
    ending = pytest.raises(Conflict, match="c-0 answers again") if is_counted else nullcontext()
    with patch.object(EtcdClient, "status", lambda of: replace(status(of), **change)), ending:
        acts.act(ConfirmSilence(survivors=(), message="lost", given_up=("c-0",)))


def test_a_seed_is_dropped_only_for_a_quorum_that_answers(made: Bench, channels: Channels) -> None:
    acts = Acts(made, channels)
    freeze(made, "c-0", "c-1")
    with pytest.raises(OperatorError):
        acts.act(DropSeed(name="c-2"))
    assert made.names(PEERS) == ["c-0", "c-1", "c-2"]

    for name in ("c-0", "c-1"):
        made.etcd.etcd.thaw(name)
    acts.act(DropSeed(name="c-2"))
    assert "deletionTimestamp" in made.get(PEERS, "c-2")["metadata"]


def test_a_learner_is_not_asked_whether_a_quorum_answers(made: Bench, channels: Channels) -> None:
    """It refuses a linearizable read."""
    acts = Acts(made, channels)
    with made.etcd.etcd.changed:
        made.etcd.etcd.member("c-0").is_learner = True
    learner = answer("c-0", (), cluster_id="c0de", leader="id-c-1", is_learner=True)
    members = (replace(m, answer=learner) if m.name == "c-0" else m for m in acts.state.members)
    acts.state = replace(acts.state, members=tuple(members))
    acts.act(DropSeed(name="c-2"))
    assert "deletionTimestamp" in made.get(PEERS, "c-2")["metadata"]


def test_nobody_of_another_cluster_vouches_for_the_old_one(made: Bench, channels: Channels) -> None:
    acts = Acts(made, channels)
    foreign = answer("c-0", LISTED, cluster_id="feed")
    acts.state = replace(acts.state, members=tuple(replace(m, answer=foreign) for m in acts.state.members))
    with pytest.raises(Conflict, match="no quorum of the old cluster"):
        acts.act(DropSeed(name="c-2"))


def test_a_service_that_is_somebody_elses_is_not_edited(made: Bench, channels: Channels) -> None:
    acts = Acts(made, channels)
    acts.state = replace(acts.state, desired=replace(acts.state.desired, uid="another"))
    before = made.get(SERVICES)
    with pytest.raises(Conflict, match="Service c is not this cluster's"):
        acts.act(OpenSeed(name="c-3"))
    assert made.get(SERVICES) == before


def beside(made: Bench, acts: Acts, **changes: Any) -> None:
    """A seed, and an old member at the same address, where a leader is followed. changes: of its answer."""
    etcd = made.etcd.etcd
    with etcd.changed:
        etcd.members[:] = [each for each in etcd.members if each.name == "c-2"]
    (seed,) = (m for m in acts.state.members if m.name == "c-2")
    assert seed.claim is not None
    assert seed.answer is not None
    seed = replace(
        seed, claim=replace(seed.claim, cluster_id=""), answer=replace(seed.answer, cluster_id="feed")
    )
    old = replace(seed, name="c-9", answer=answer("c-9", LISTED, cluster_id="c0de", **changes))
    acts.state = replace(acts.state, members=(seed, old))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        pytest.param({}, "c-9 follows a leader, or has newer data", id="a leader"),
        pytest.param(
            {"leader": 0, "revision": 8}, "c-9 follows a leader, or has newer data", id="newer data"
        ),
        pytest.param(None, "c-0 answers again: c-2 may not be needed", id="one that was silent"),
        pytest.param({"leader": 0}, "", id="all is as it was"),
    ],
)
def test_a_seed_is_set_existing_only_while_the_old_cluster_is_as_it_was_seen(
    made: Bench, channels: Channels, change: dict[str, Any] | None, match: str
) -> None:
    acts, status = Acts(made, channels), EtcdClient.status
    silent = replace(acts.state.by_name["c-0"], answer=None)
    beside(made, acts, revision=7)
    seed, old = acts.state.members
    acts.state = replace(acts.state, members=(seed, old if change is not None else silent))
    before = made.get(CLAIMS, "c-2"), made.get(PEERS, "c-2")
    changes = {"revision": 7, **(change or {})}
    with patch.object(EtcdClient, "status", lambda of: replace(status(of), **changes)):
        ending = pytest.raises(Conflict, match=match) if match else nullcontext()
        with ending:
            acts.act(SetSeedExistingOnly(name="c-2", revision=0))
    assert ((made.get(CLAIMS, "c-2"), made.get(PEERS, "c-2")) == before) is bool(match)


def test_a_learner_that_reports_a_leader_does_not_stop_a_recovery(made: Bench, channels: Channels) -> None:
    """It reports the last one that it knew, for ever."""
    acts = Acts(made, channels)
    beside(made, acts, is_learner=True)
    acts.act(SetSeedExistingOnly(name="c-2", revision=0))
    assert "etcd.improbable.io/cluster-id" in made.get(CLAIMS, "c-2")["metadata"]["annotations"]


def test_a_seed_that_lost_its_peer_is_not_set_existing_only(made: Bench, channels: Channels) -> None:
    acts = Acts(made, channels)
    etcd = made.etcd.etcd
    with etcd.changed:
        etcd.members[:] = [each for each in etcd.members if each.name == "c-2"]
    acts.state = replace(acts.state, members=tuple(replace(m, peer=None) for m in acts.state.members))
    before = made.get(CLAIMS, "c-2")
    with pytest.raises(OperatorError, match="c-2 has no peer or no claim"):
        acts.act(SetSeedExistingOnly(name="c-2", revision=0))
    assert made.get(CLAIMS, "c-2") == before


def test_nothing_is_given_up_for_a_seed_whose_pod_is_being_deleted(made: Bench, channels: Channels) -> None:
    """It still answers, and the caches do not show that it will not for long."""
    acts = Acts(made, channels)
    pod = next(p for p in made.api.objects.select(PODS) if p["metadata"]["labels"][PEER_LABEL] == "c-2")
    name = pod["metadata"]["name"]
    made.edit(PODS, name, {"metadata": {"finalizers": ["test/held"]}})
    made.delete(PODS, name)
    with pytest.raises(Conflict, match="c-2 has changed since it was observed"):
        acts.act(RetireMember(name="c-0", seed="c-2", keeps_data=True))
