"""Which pages of members a decision depends on, and what they say of the members. Pure.

Pages are read on the prober's threads, after the members were asked, and only those that this
module names (see `etcd.vitals`): at a bootstrap that has lost a pod, which of the silent initial
members have never served; before 3.7, who has saved a raft snapshot; and when the members' versions
have changed, until etcd has followed, the version that the cluster has agreed on.
"""

from collections.abc import Callable, Collection

from semver import Version

from etcd_operator.core.desired import DesiredCluster
from etcd_operator.core.members import Member
from etcd_operator.core.upgrade.skew import has_old_entries, needs_snapshots
from etcd_operator.core.versions import is_agreed
from etcd_operator.etcd.probe import Answer, Probe
from etcd_operator.etcd.vitals import NOTHING, Page, Reading, Vitals
from etcd_operator.render.urls import CLIENT_PORT, endpoint

Wanted = Callable[[Probe], frozenset[Reading]]
"""What has to be read, once it is known who answers."""


def nothing(_: Probe) -> frozenset[Reading]:
    """The `Wanted` of most passes."""
    return frozenset()


def wanted(desired: DesiredCluster, members: Collection[Member]) -> Wanted:
    """The pages on which decisions about this cluster depend now."""
    asked: list[Wanted] = []
    if _asks_for_snapshots(desired):
        asked.append(_of_old_versions)
    if _asks_for_proof(desired, members):
        fresh = frozenset(at for member in members if (at := _unrestarted(member)))
        asked.append(lambda look: _of_silent(fresh, look))
    if desired.cluster_version is not None:
        known = desired.cluster_version
        asked.append(lambda look: _of_one_voter(known, look))
    return lambda look: frozenset().union(*(each(look) for each in asked))


def judged(desired: DesiredCluster, members: tuple[Member, ...], look: Probe) -> tuple[Member, ...]:
    """The members with what their pages say; those that nobody asks about as they are."""
    if _asks_for_snapshots(desired):
        return tuple(_counted(member, look) for member in members)
    if _asks_for_proof(desired, members):
        return tuple(_with_proof(member, look) for member in members)
    return members


def cluster_version(desired: DesiredCluster, look: Probe) -> str:
    """etcd's own, as a page of this look has it, else as last known; empty when it is not known."""
    read = [Version.parse(each.cluster_version) for each in look.vitals.values() if each.cluster_version]
    return str(max(read)) if read else desired.cluster_version or ""


def is_version_hidden(look: Probe) -> bool:
    """Whether pages were asked for and none could be read."""
    return bool(look.vitals) and all(each == NOTHING for each in look.vitals.values())


def _asks_for_snapshots(desired: DesiredCluster) -> bool:
    return desired.persisted.is_bootstrapped and not desired.problem and needs_snapshots(desired)


def _asks_for_proof(desired: DesiredCluster, members: Collection[Member]) -> bool:
    """Whether an initial member's pod is missing or has ended before the cluster ID is on record."""
    bootstrap = desired.persisted.bootstrap
    if bootstrap is None or desired.persisted.is_bootstrapped or not desired.kind.data_is_as_old_as_pod:
        return False
    there = {m.name for m in members if m.pod is not None and not m.pod.is_finished}
    return not there.issuperset(bootstrap.members)


def _of_old_versions(look: Probe) -> frozenset[Reading]:
    return frozenset(
        Reading(at, Page.METRICS)
        for at, reply in look.answers.items()
        if isinstance(reply, Answer) and has_old_entries(reply.status.version)
    )


def _of_one_voter(known: str, look: Probe) -> frozenset[Reading]:
    """The page of the voter that has come the furthest, unless its cluster version is as known already."""
    voters = {
        at: reply.status
        for at, reply in look.answers.items()
        if isinstance(reply, Answer) and not reply.status.is_learner
    }
    if not look.quorum or is_agreed(known, (status.version for status in voters.values())):
        return frozenset()
    return frozenset([Reading(max(voters, key=lambda at: (voters[at].raft_applied_index, at)), Page.METRICS)])


def _of_silent(endpoints: frozenset[str], look: Probe) -> frozenset[Reading]:
    silent = (at for at in endpoints if not isinstance(look.answers.get(at), Answer))
    return frozenset(Reading(at, Page.METRICS) for at in silent)


def _counted(member: Member, look: Probe) -> Member:
    if member.answer is None or not has_old_entries(member.answer.version):
        return member
    return member.counted(_vitals(member, look).snapshots_saved)


def _with_proof(member: Member, look: Probe) -> Member:
    if member.answer is not None or not _unrestarted(member):
        return member
    return member.proven(never_led=_vitals(member, look).leaders_seen == 0)


def _unrestarted(member: Member) -> str:
    """The endpoint of a member whose first process runs; empty for others."""
    pod = member.pod
    if pod is None or not pod.ip or not pod.is_running or pod.has_restarted:
        return ""
    return endpoint(pod.ip, CLIENT_PORT)


def _vitals(member: Member, look: Probe) -> Vitals:
    at = endpoint(member.pod.ip, CLIENT_PORT) if member.pod is not None else ""
    return look.vitals.get(at, NOTHING)
