"""What the pass over a cluster takes from its EtcdPeers' passes: facts for decisions, words for people."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.members import Member, PeerFinding, PodProblem
from etcd_operator.controllers.etcd_cluster.members.cached import CachedMembers
from etcd_operator.keys import Key
from unit.controllers.etcd_cluster.test_acts import KEY, Acts
from unit.fakes.apiserver.kinds import PODS, REPLICA_SETS
from unit.passes.bench import Bench, bootstrapped
from unit.passes.bodies import IMPROBABLE, persistent

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
