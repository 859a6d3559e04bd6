"""What an upgrade does to Kubernetes objects, and what it tells: Events and numbers.

A member is replaced on its own data. Ephemeral: the image of its running pod is changed and the
kubelet restarts the container, with the volume as it is. Persistent: its EtcdPeer is deleted in the
foreground, so that it is gone only after its pod is, and never two processes of one member meet; the
claim stays, marked with the version that shall run on it. Whoever finds the peer missing makes it
again at that version (`core.rules.objects`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from etcd_operator.api import coreos, improbable
from etcd_operator.api.meta import RawObject
from etcd_operator.api.persisted import Upgrade
from etcd_operator.clock import Clock
from etcd_operator.core.actions import ReplaceMember
from etcd_operator.core.kinds.persistent import PERSISTENT
from etcd_operator.core.members import Member
from etcd_operator.core.state import ClusterState
from etcd_operator.errors import Conflict
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.client import PatchKind
from etcd_operator.reconcile.objects import Objects

CONTAINER = "etcd"

Seconds = Callable[[float], None]
"""Told of a duration in seconds."""


def replace_member(objects: Objects, state: ClusterState, action: ReplaceMember) -> None:
    """Stop a member and let it start at another version. Raises Conflict if the world has changed."""
    member = state.by_name[action.name]
    if state.kind is PERSISTENT:
        _replace_peer(objects, member, action)
        return
    if member.pod is None or member.pod.is_terminating:
        raise Conflict(f"the pod of {action.name} is going: not upgrading it")
    image = state.desired.at(action.version).image
    change: RawObject = {
        "metadata": {"uid": member.pod.uid, "annotations": {coreos.VERSION_ANNOTATION: action.version}},
        "spec": {"containers": [{"name": CONTAINER, "image": image}]},
    }
    objects.patch(resources.PODS, action.name, change, PatchKind.STRATEGIC)


def _replace_peer(objects: Objects, member: Member, action: ReplaceMember) -> None:
    peer, claim = member.peer, member.claim
    if peer is None or peer.is_terminating or peer.is_for_cleanup:
        raise Conflict(f"the EtcdPeer {action.name} is going: not upgrading it")
    if claim is not None and claim.version != action.version:
        notes = {improbable.VERSION_ANNOTATION: action.version}
        change: RawObject = {"metadata": {"uid": claim.uid, "annotations": notes}}
        objects.patch(resources.CLAIMS, action.name, change)
    objects.client.delete(resources.PEERS, objects.key(action.name), uid=peer.uid, propagation="Foreground")


def news(before: Upgrade | None, after: Upgrade | None, state: ClusterState) -> list[tuple[str, str]]:
    """The Events that a change of what is remembered about an upgrade stands for."""
    told = []
    if before is not None and before.member and (after is None or before.member != after.member):
        told.append(("MemberUpgraded", f"{before.member} serves at {_running(state, before)}"))
    if after is None and before is not None:
        told.append(("UpgradeFinished", f"all members run {state.desired.version}"))
    elif after is not None and (before is None or before.target != after.target):
        told.append(("UpgradeStarted", f"from {after.origin} to {after.target}"))
    return told


def _running(state: ClusterState, upgrade: Upgrade) -> str:
    member = state.by_name.get(upgrade.member)
    answer = member.answer if member is not None else None
    return answer.version if answer is not None else upgrade.target


@dataclass(kw_only=True)
class UpgradeWatch:
    """Measures upgrades by the looks that are made anyway: how long they take, how long nobody led."""

    clock: Clock
    on_finished: Seconds
    on_leaderless: Seconds
    _without_leader: dict[Key, float] = field(default_factory=dict)

    def saw(self, key: Key, state: ClusterState) -> None:
        """A look at a cluster; only one with an upgrade under way counts."""
        now = self.clock.monotonic()
        since = self._without_leader.pop(key, None)
        if since is not None:
            self.on_leaderless(now - since)
        if state.persisted.upgrade is not None and (state.leader is None or not state.has_quorum):
            self._without_leader[key] = now

    def finished(self, upgrade: Upgrade) -> None:
        """An upgrade is over."""
        if upgrade.since:
            began = datetime.fromisoformat(upgrade.since)
            self.on_finished((self.clock.now() - began).total_seconds())
