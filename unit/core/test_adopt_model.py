"""Random adoptions: whatever members fall silent and however the mode changes, no quorum is given up."""

import random
from dataclasses import dataclass, field, replace

import pytest

from etcd_operator.api.adoption import Mode
from etcd_operator.core.actions import Action, DeleteMember, Remember
from etcd_operator.core.desired import DesiredCluster
from etcd_operator.core.members import Member, ordinal_of, quorum
from etcd_operator.core.membership_actions import (
    AddLearner,
    MoveLeader,
    Promote,
    RemoveExternal,
    RemoveMember,
)
from etcd_operator.core.plan import plan
from etcd_operator.core.replies import EtcdMember
from etcd_operator.core.state import ClusterState
from unit.core.adoptions import external, offered, theirs
from unit.core.builders import answer, entry, serving

MODES: tuple[Mode, ...] = ("Complete", "Join", "Leave")
SIZE = 3
STEPS = 60
ENOUGH = 40
"""Steps without a fault in which every adoption ends, or is turned back."""


@dataclass
class World:
    """An etcd cluster of which some members are external. Members are known by ID."""

    desired: DesiredCluster
    listed: dict[str, EtcdMember]
    leader: str
    silent: set[str] = field(default_factory=set)
    removed: int = 0
    losses: list[str] = field(default_factory=list)

    @property
    def voters(self) -> list[str]:
        return [each.id for each in self.listed.values() if not each.is_learner]

    def has_quorum(self) -> bool:
        return sum(each not in self.silent for each in self.voters) >= quorum(len(self.voters))

    def observe(self) -> ClusterState:
        listed = tuple(self.listed.values())
        if self.leader in self.silent or self.leader not in self.voters:
            self.leader = next((each for each in self.voters if each not in self.silent), "")
        ours = [each for each in listed if each.name.startswith("db-")]
        numbers = [ordinal_of(each.name) for each in listed if each.name.startswith("old-")]
        return ClusterState(
            desired=self.desired,
            members=tuple(self._ours(each, listed) for each in ours),
            external=tuple(self._heard(external(number, listed)) for number in numbers),
            has_client_service=True,
            budget=quorum(SIZE),
            has_quorum=self.has_quorum(),
            age=3600.0,
        )

    def _ours(self, each: EtcdMember, listed: tuple[EtcdMember, ...]) -> Member:
        member = self._heard(serving(self.desired, each.name, listed, entry=each))
        if each.is_learner and member.answer is not None:
            return replace(member, answer=answer(each.name, is_learner=True))
        return member

    def _heard(self, member: Member) -> Member:
        if member.id in self.silent:
            return replace(member, answer=None)
        assert member.answer is not None
        return replace(member, answer=replace(member.answer, leader=self.leader))

    def apply(self, action: Action) -> None:
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
                assert f"id-{action.name}" not in self.listed
            case _:
                pass  # objects, which this world has always

    def _remove(self, action: RemoveExternal | RemoveMember) -> None:
        had_quorum = self.has_quorum()
        if self.leader == action.member_id:
            self.losses.append("a leader is removed")
        del self.listed[action.member_id]
        if had_quorum and not self.has_quorum():
            self.losses.append(f"{action.name} is removed and with it the quorum")
        if isinstance(action, RemoveExternal):
            self.removed += 1
            ours = [each for each in self.voters if "db-" in each and each not in self.silent]
            if len(ours) < quorum(len(self.voters)):
                self.losses.append("an external member is removed too early")
        elif self.removed:
            self.losses.append("ours leave after an external member was removed")

    def step(self) -> None:
        for action in plan(self.observe()).actions:
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


@pytest.mark.parametrize("seed", range(150))
def test_no_quorum_is_given_up_and_each_adoption_ends(seed: int) -> None:
    chance = random.Random(seed)
    world = begun(chance.choice((1, 2, 3)))
    for _ in range(STEPS):
        if chance.random() < 0.2:
            world.set_mode(chance.choice(MODES))
        if chance.random() < 0.3 and world.listed:
            world.silent ^= {chance.choice(sorted(world.listed))}
        world.step()
    last: Mode = "Complete" if world.removed else chance.choice(("Complete", "Leave"))
    world.silent.clear()
    world.set_mode(last)
    for _ in range(ENOUGH):
        world.step()

    assert world.losses == []
    ours = [each for each in world.listed if "db-" in each]
    assert len(ours) == (SIZE if last == "Complete" else 0)
    assert (len(world.listed) == SIZE) or last == "Leave"
    adoption = world.desired.persisted.adoption
    assert adoption is not None
    assert adoption.finished is (last == "Complete")
