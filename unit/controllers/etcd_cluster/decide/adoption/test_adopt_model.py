"""Random adoptions: whatever members fall silent or restart without data, and however the mode changes, no
quorum is given up, and no copy of the data.
"""

import random
from dataclasses import dataclass, field, replace

import pytest

from etcd_operator.api.cluster_spec import Mode
from etcd_operator.controllers.etcd_cluster.decide.actions import (
    Action,
    AddLearner,
    DeleteMember,
    MembershipAction,
    MoveLeader,
    Promote,
    Remember,
    RemoveExternal,
    RemoveMember,
)
from etcd_operator.controllers.etcd_cluster.decide.adoption import external_answers
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.facts.budget import min_available as plan_budget
from etcd_operator.controllers.etcd_cluster.decide.members import Member, quorum
from etcd_operator.controllers.etcd_cluster.decide.observation import is_own_quorum, observed
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.replies import Reply, Silence
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.decide.clusters import ordinal_of
from etcd_operator.etcd.values import EtcdMember
from unit.controllers.etcd_cluster.decide.adoption.adoptions import offered, theirs
from unit.controllers.etcd_cluster.decide.builders import answer, entry, serving

MODES: tuple[Mode, ...] = ("Complete", "Join", "Leave")
SIZE = 3
STEPS = 60
LOG = 40
"""The raft index of all members that have the data."""
ENOUGH = 40
"""Steps without a fault in which every adoption ends, or is turned back."""


@dataclass
class World:
    """An etcd cluster of which some members are external. Members are known by ID."""

    desired: DesiredCluster
    listed: dict[str, EtcdMember]
    leader: str
    silent: set[str] = field(default_factory=set)
    blank: dict[str, int] = field(default_factory=dict)
    """External members that run without data, and how long their logs are."""
    left_over: set[str] = field(default_factory=set)
    """Members of ours that were removed and still have objects."""
    recorded: set[str] = field(default_factory=set)
    """External members of which the removal was recorded before the step."""
    is_refused: bool = False
    """Whether etcd refuses the next removal of an external member, after it was recorded."""
    removed: int = 0
    losses: list[str] = field(default_factory=list)

    @property
    def voters(self) -> list[str]:
        return [each.id for each in self.listed.values() if not each.is_learner]

    @property
    def able(self) -> list[str]:
        return [each for each in self.voters if each not in self.silent and each not in self.blank]

    @property
    def is_ending(self) -> bool:
        """Whether external members leave: there is no way back."""
        return bool(self.removed) or any(each.removed for each in external_answers.recorded(self.desired))

    def has_quorum(self) -> bool:
        return len(self.able) >= quorum(len(self.voters))

    def observe(self) -> ClusterState:
        if self.leader not in self.able:
            self.leader = next(iter(self.able), "")
        ours = [each.name for each in self.listed.values() if each.name.startswith("db-")]
        recorded = external_answers.recorded(self.desired)
        found = observed(
            self.desired,
            {name: self._objects(name) for name in (*ours, *self.left_over)},
            {name: self._reply(f"id-{name}", name) for name in ours},
            {},
            external={each.endpoint: self._reply(each.id, each.id.removeprefix("id-")) for each in recorded},
            name_at=lambda url: url.removeprefix("http://").removesuffix(":2380") if "//db-" in url else "",
        )
        proven = self.has_quorum() or any(each not in self.silent for each in self.blank)
        return replace(
            found,
            has_client_service=True,
            budget=plan_budget(found),
            has_quorum=proven and is_own_quorum(found),
            age=3600.0,
        )

    def _objects(self, name: str) -> Member:
        listed = tuple(self.listed.values())
        if f"id-{name}" not in self.listed:
            listed = (*listed, entry(name))
        return replace(serving(self.desired, name, listed), entry=None, answer=None)

    def _reply(self, member_id: str, name: str) -> Reply:
        if member_id not in self.listed or member_id in self.silent:
            return Silence(seconds=1.0)
        if member_id in self.blank:
            return answer(name, theirs(3)[ordinal_of(name) :][:1], committed=self.blank[member_id])
        leader = self.leader if self.has_quorum() else ""
        if self.listed[member_id].is_learner:
            return answer(name, is_learner=True, leader=leader, committed=LOG)
        return answer(name, tuple(self.listed.values()), leader=leader, committed=LOG)

    def restart_without_data(self, member_id: str, chance: random.Random) -> None:
        """The log of such a member grows, but it is shorter than that of the others when ours joined."""
        has_ours = any("db-" in each for each in self.listed) or self.left_over
        self.blank[member_id] = chance.choice((4, LOG - 1)) if has_ours else 4

    def remove_by_hand(self, member_id: str) -> None:
        """As `etcdctl member remove`, which etcd refuses if the others are no quorum."""
        others = [each for each in self.voters if each != member_id]
        if len([each for each in self.able if each != member_id]) < quorum(len(others)):
            return
        name = self.listed.pop(member_id).name
        self.left_over.add(name)

    def obey(self) -> None:
        """A person does what the message says, having verified that the external members have all data."""
        _, has_command, command = plan(self.observe()).message.partition("kubectl delete pvc,etcdpeer ")
        if has_command and not self.blank:
            for name in command.partition(";")[0].split(" "):
                self._delete(name)

    def apply(self, action: Action) -> None:
        if isinstance(action, MembershipAction) and not self.has_quorum():
            self.losses.append(f"{action} without a quorum")
            return
        match action:
            case Remember():
                self.desired = replace(self.desired, persisted=action.persisted)
            case AddLearner():
                if any(each.is_learner for each in self.listed.values()):
                    self.losses.append("a second learner")
                self.listed[f"id-{action.name}"] = entry(action.name, is_learner=True)
            case Promote():
                self.listed[action.member_id] = entry(action.name)
            case MoveLeader():
                assert action.member_id in self.voters
                self.leader = action.member_id
            case RemoveExternal() | RemoveMember():
                self._remove(action)
            case DeleteMember():
                self._delete(action.name)
            case _:
                pass  # objects, which this world has always

    def _delete(self, name: str) -> None:
        if f"id-{name}" in self.listed:
            self.losses.append(f"the data of {name}, which is a member")
        if all(each in self.blank for each in self.voters):
            self.losses.append(f"the last copy of the data, that of {name}")
        self.left_over.discard(name)

    def _remove(self, action: RemoveExternal | RemoveMember) -> None:
        had_quorum = self.has_quorum()
        if self.leader == action.member_id:
            self.losses.append("a leader is removed")
        del self.listed[action.member_id]
        self.blank.pop(action.member_id, None)
        if had_quorum and not self.has_quorum():
            self.losses.append(f"{action.name} is removed and with it the quorum")
        if isinstance(action, RemoveExternal):
            self.removed += 1
            # One of which the removal was recorded before counts for nothing: the rest needs a quorum only.
            ours = [each for each in self.able if "db-" in each]
            if len(ours) < quorum(len(self.voters)) and action.member_id not in self.recorded:
                self.losses.append("an external member is removed too early")
            return
        self.left_over.add(action.name)
        if self.removed:
            self.losses.append("ours leave after an external member was removed")

    def step(self) -> None:
        self.recorded = {each.id for each in external_answers.recorded(self.desired) if each.removed}
        for action in plan(self.observe()).actions:
            if isinstance(action, RemoveExternal) and self.is_refused:
                return
            self.apply(action)

    def set_mode(self, mode: Mode) -> None:
        assert self.desired.adopt is not None
        self.desired = replace(self.desired, adopt=replace(self.desired.adopt, mode=mode))


def begun(count: int) -> World:
    """An adoption of `count` members right after its record."""
    offer = offered(count)
    (remember,) = plan(offer).actions
    assert isinstance(remember, Remember)
    listed = {each.id: each for each in theirs(count)}
    return World(replace(offer.desired, persisted=remember.persisted), listed, "id-old-0")


SEEDS = (*range(30), *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(30, 150)))


@pytest.mark.parametrize("seed", SEEDS)
def test_no_quorum_is_given_up_and_each_adoption_ends(seed: int) -> None:
    chance = random.Random(seed)
    world = begun(chance.choice((1, 2, 3)))
    for _ in range(STEPS):
        if chance.random() < 0.2:
            world.set_mode(chance.choice(MODES))
        if chance.random() < 0.3 and world.listed:
            world.silent ^= {chance.choice(sorted(world.listed))}
        if chance.random() < 0.1 and external_answers.recorded(world.desired):
            old = chance.choice(external_answers.recorded(world.desired)).id
            if old in world.blank:
                del world.blank[old]
            elif old in world.listed:
                world.restart_without_data(old, chance)
        ours = sorted(each for each in world.listed if "db-" in each)
        # Once external members leave, others join after the end of the adoption, which is not simulated.
        if ours and not world.is_ending and not world.blank and chance.random() < 0.15:
            world.remove_by_hand(chance.choice(ours))
        if chance.random() < 0.3:
            world.obey()
        world.is_refused = chance.random() < 0.3
        world.step()
    last: Mode = "Complete" if world.is_ending else chance.choice(("Complete", "Leave"))
    world.silent.clear()
    world.blank.clear()
    world.is_refused = False
    world.set_mode(last)
    for _ in range(ENOUGH):
        world.obey()
        world.step()

    assert world.losses == []
    ours = [each for each in world.listed if "db-" in each]
    assert len(ours) == (SIZE if last == "Complete" else 0)
    assert (len(world.listed) == SIZE) or last == "Leave"
    assert world.left_over == set()
    made = world.desired.persisted.adoption
    assert made is not None
    assert made.finished is (last == "Complete")
