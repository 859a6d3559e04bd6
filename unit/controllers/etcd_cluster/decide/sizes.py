"""Clusters whose size is edited, and members that join."""

from dataclasses import replace
from typing import Any

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.members import Member, quorum
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.etcd.values import EtcdMember
from unit.controllers.etcd_cluster.decide.builders import answer, bootstrapped, entry, serving


def sized(cluster: DesiredCluster, size: int) -> ClusterState:
    """Three healthy voters, asked to be `size`."""
    state = bootstrapped(cluster)
    kept = quorum(max(len(state.voters), size))
    return replace(state, desired=replace(state.desired, size=size), budget=kept)


def with_members(state: ClusterState, *members: Member) -> ClusterState:
    return replace(state, members=(*state.members, *members))


def with_learner(state: ClusterState, name: str, **changes: Any) -> ClusterState:
    """A fourth member that etcd lists as a learner, running and answering."""
    member = serving(state.desired, name, (), entry=entry(name, is_learner=True))
    learner = replace(member, answer=answer(name, is_learner=True))
    return with_members(state, replace(learner, **changes))


def unstarted(name: str) -> EtcdMember:
    return replace(entry(name, is_learner=True), name="")


def kinds(made: Plan) -> list[str]:
    return [type(action).__name__ for action in made.actions]
