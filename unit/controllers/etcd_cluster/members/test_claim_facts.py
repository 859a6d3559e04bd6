"""The objects that only persistent members have, as facts."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pytest

from etcd_operator.api.improbable import EtcdPeer
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.members import (
    ClaimFacts,
    Member,
    PeerFacts,
    PeerFinding,
    PodProblem,
)
from etcd_operator.controllers.etcd_cluster.members.cached import CachedMembers
from etcd_operator.controllers.etcd_cluster.members.claim_facts import (
    claim_facts,
    peer_facts,
    replica_set_problem,
    with_claim,
)
from etcd_operator.keys import Key
from etcd_operator.kube.views import Claim, ReplicaSet
from unit.controllers.etcd_cluster.test_acts import KEY, Acts
from unit.controllers.manifests.cases import BOOTSTRAPPING, JOINING, PLAIN_PERSISTENT, RESUMING, peer_of
from unit.fakes.apiserver.kinds import PODS, REPLICA_SETS
from unit.passes.bench import Bench, bootstrapped
from unit.passes.bodies import IMPROBABLE, persistent


@pytest.mark.parametrize(
    ("conditions", "problem"),
    [
        ([], None),
        ([{"type": "ReplicaFailure", "status": "False"}], None),
        ([{"type": "Other", "status": "True"}], None),
        (
            [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "quota"}],
            PodProblem(reason="FailedCreate", message="quota"),
        ),
        ([{"type": "ReplicaFailure", "status": "True"}], PodProblem(reason="ReplicaFailure", message="")),
    ],
    ids=["none", "passed", "another", "quota", "no message"],
)
def test_what_keeps_a_replica_set_from_making_its_pod(
    conditions: list[dict[str, str]], problem: PodProblem | None
) -> None:
    found = msgspec.convert({"metadata": {"name": "db-0"}, "status": {"conditions": conditions}}, ReplicaSet)

    assert replica_set_problem(found) == problem


def _claim(annotations: dict[str, str], **body: Any) -> Claim:
    metadata = {"name": "db-0", "uid": "u", "annotations": annotations, **body.pop("metadata", {})}
    return msgspec.convert({"metadata": metadata, **body}, Claim)


NO_VOLUME = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"storageClassName": "fast"}, "PersistentVolumeClaim c-0 of StorageClass fast has no volume"),
        ({}, "PersistentVolumeClaim c-0 without a StorageClass has no volume"),
    ],
)
def test_a_pod_without_a_node_for_lack_of_a_volume_names_the_claim_and_its_class(
    spec: dict[str, Any], named: str
) -> None:
    claim = claim_facts(msgspec.convert({"metadata": {"name": "c-0"}, "spec": spec}, Claim))
    made = with_claim(PodProblem(reason="Unschedulable", message=NO_VOLUME), claim)
    assert made is not None
    assert (made.reason, made.message.startswith(f"{NO_VOLUME}: {named}")) == ("Unschedulable", True)


def test_a_claim_is_not_named_where_it_is_not_the_reason() -> None:
    lacking = PodProblem(reason="Unschedulable", message=NO_VOLUME)
    busy = PodProblem(reason="Unschedulable", message="0/1 nodes are available: 1 Insufficient cpu.")
    claim = claim_facts(msgspec.convert({"metadata": {"name": "c-0"}}, Claim))
    assert with_claim(busy, claim) is busy
    assert with_claim(lacking, replace(claim, is_bound=True)) is lacking
    assert with_claim(lacking, None) is lacking
    assert with_claim(None, claim) is None


def test_a_bare_claim_reports_nothing_of_a_bootstrap() -> None:
    assert claim_facts(_claim({})) == ClaimFacts(name="db-0", uid="u")


@pytest.mark.parametrize(("text", "is_started"), [("true", True), ("false", False), ("", None), ("x", None)])
def test_whether_an_initial_member_was_started(text: str, is_started: bool | None) -> None:
    assert claim_facts(_claim({"etcd.improbable.io/started": text})).is_started is is_started


@pytest.mark.parametrize("text", ["", "many", "-1", "1.5"])
def test_a_revision_that_is_no_number_is_none(text: str) -> None:
    assert claim_facts(_claim({"etcd.improbable.io/voters-revision": text})).voters_revision == 0


@pytest.mark.parametrize(
    ("phase", "is_bound", "is_lost"),
    [("Bound", True, False), ("Pending", False, False), ("Lost", False, True)],
)
def test_the_phase_of_a_claim(phase: str, is_bound: bool, is_lost: bool) -> None:
    facts = claim_facts(_claim({}, status={"phase": phase}))

    assert (facts.is_bound, facts.is_lost) == (is_bound, is_lost)


@pytest.mark.parametrize(
    ("peer", "is_existing_only"),
    [
        pytest.param(peer_of(PLAIN_PERSISTENT, start=BOOTSTRAPPING), False, id="an initial member"),
        pytest.param(peer_of(PLAIN_PERSISTENT, start=RESUMING), True, id="existing and alone"),
        pytest.param(peer_of(PLAIN_PERSISTENT, "db-3", JOINING), False, id="existing with a whole list"),
    ],
)
def test_a_peer_has_an_existing_only_start_when_it_knows_only_itself_and_bootstraps_nothing(
    peer: EtcdPeer, is_existing_only: bool
) -> None:
    assert peer_facts(peer, {}).is_existing_only is is_existing_only


def test_the_only_initial_member_of_a_small_cluster_has_no_existing_only_start() -> None:
    existing_only = peer_of(PLAIN_PERSISTENT, start=RESUMING)
    bootstrap = msgspec.structs.replace(existing_only.spec.bootstrap, initial_cluster_state="New")
    initial_member = msgspec.structs.replace(
        existing_only, spec=msgspec.structs.replace(existing_only.spec, bootstrap=bootstrap)
    )

    facts = PeerFacts(name="db-1", uid="uid-peer", version="3.6.16")
    assert peer_facts(initial_member, PLAIN_PERSISTENT.claim_template) == facts
    assert peer_facts(initial_member, {}) == replace(facts, has_other_storage=True)


NAME = "c-1"
LOST = PodProblem(reason="Anything", message="for people", finding=PeerFinding.CLAIM_LOST)
REFUSED = PodProblem(reason="Anything", message="for people", finding=PeerFinding.REFUSED)
WORDS = PodProblem(reason="ClaimLost", message="for people")


@dataclass
class Seen:
    """Members as the caches show them while no pass runs."""

    made: Bench
    cached: CachedMembers  # type: ignore[type-arg]
    desired: DesiredCluster

    def member(self, problem: PodProblem | None) -> Member:
        """The member whose EtcdPeer has this problem."""
        assert self.made.operator is not None
        self.made.operator.catch_up()
        cached = replace(self.cached, peer_problem={Key("default", NAME): problem}.get)
        found = cached.members(KEY, self.desired, cached.claims(KEY, self.desired))
        assert not any(member.has_lost_claim for name, member in found.items() if name != NAME)
        return found[NAME]

    def without_pod(self) -> None:
        for name in self.made.names(PODS):
            if name.startswith(NAME):
                self.made.delete(PODS, name, grace=0)


@pytest.fixture
def seen() -> Iterator[Seen]:
    with bootstrapped(*persistent()) as made:
        acts = Acts(made, IMPROBABLE)
        yield Seen(made, acts._of.observer.cached, acts.state.desired)


def test_a_claim_is_lost_where_the_pass_over_its_peer_found_that(seen: Seen) -> None:
    seen.without_pod()
    lost = seen.member(LOST)
    assert (lost.has_lost_claim, lost.problem) == (True, LOST)
    for problem in (WORDS, REFUSED, None):
        other = seen.member(problem)
        assert (other.has_lost_claim, other.problem) == (False, problem)


def test_no_claim_is_lost_while_there_is_a_pod(seen: Seen) -> None:
    member = seen.member(LOST)
    assert (member.has_lost_claim, member.problem) == (False, None)
    assert seen.member(REFUSED).problem == REFUSED, "somebody changed the peer of a member that runs"
    assert seen.member(replace(REFUSED, finding=None)).problem is None


def test_no_claim_is_lost_while_a_replica_set_tries_to_make_a_pod(seen: Seen) -> None:
    seen.without_pod()
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "quota"}
    seen.made.edit(REPLICA_SETS, NAME, {"status": {"conditions": [failure]}}, subresource="status")
    member = seen.member(LOST)
    assert (member.has_lost_claim, member.problem) == (
        False,
        PodProblem(reason="FailedCreate", message="quota"),
    )
    seen.made.delete(REPLICA_SETS, NAME)
    assert seen.member(LOST).has_lost_claim
