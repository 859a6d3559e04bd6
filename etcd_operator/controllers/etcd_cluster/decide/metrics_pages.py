"""Which members' metrics pages a decision depends on, and what they prove about the members.

A page is read only where nothing else proves it, after the members were asked by gRPC: at a bootstrap
that has lost a pod, which of the silent initial members have never served; before 3.7, which members
have saved a raft snapshot; and after the members' versions have changed, until etcd has followed, the
version that the cluster has agreed on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from semver import Version

from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.replies import Answer, Reply
from etcd_operator.controllers.etcd_cluster.decide.upgrade.skew import has_old_entries, needs_snapshots
from etcd_operator.etcd.values import UNREAD, MetricsPage
from etcd_operator.versions import is_agreed


def needed(
    desired: DesiredCluster,
    objects: Mapping[str, Member],
    replies: Mapping[str, Reply],
    *,
    has_quorum: bool,
) -> frozenset[str]:
    """The names of the members whose page has to be read. has_quorum: a quorum has just been proven."""
    answers = {name: reply for name, reply in replies.items() if isinstance(reply, Answer)}
    found: set[str] = set()
    if _needs_snapshots(desired):
        found |= {name for name, answer in answers.items() if has_old_entries(answer.version)}
    if _needs_proof(desired, objects.values()):
        found |= {name for name, member in objects.items() if name not in answers and _is_first_run(member)}
    if desired.cluster_version is not None and has_quorum:
        found |= _furthest_voter(desired.cluster_version, answers)
    return frozenset(found)


def with_pages(
    desired: DesiredCluster, members: tuple[Member, ...], pages: Mapping[str, MetricsPage]
) -> tuple[Member, ...]:
    """The members with what their pages prove; unchanged where no decision depends on that."""
    if _needs_snapshots(desired):
        return tuple(_with_snapshots(member, pages.get(member.name, UNREAD)) for member in members)
    if _needs_proof(desired, members):
        return tuple(_with_proof(member, pages.get(member.name, UNREAD)) for member in members)
    return members


def cluster_version(desired: DesiredCluster, pages: Mapping[str, MetricsPage]) -> str:
    """etcd's own version, as a page has it, else as last known; empty while it is not known."""
    read = [Version.parse(page.cluster_version) for page in pages.values() if page.cluster_version]
    return str(max(read)) if read else desired.cluster_version or ""


def is_version_hidden(pages: Mapping[str, MetricsPage]) -> bool:
    """Whether pages were needed and none could be read."""
    return bool(pages) and all(page == UNREAD for page in pages.values())


def _needs_snapshots(desired: DesiredCluster) -> bool:
    return desired.persisted.is_bootstrapped and not desired.problem and needs_snapshots(desired)


def _needs_proof(desired: DesiredCluster, members: Iterable[Member]) -> bool:
    """Whether an initial member's pod is missing or has ended before the cluster ID is on record."""
    bootstrap = desired.persisted.bootstrap
    if bootstrap is None or desired.persisted.is_bootstrapped or not desired.kind.data_is_as_old_as_pod:
        return False
    there = {m.name for m in members if m.pod is not None and not m.pod.is_finished}
    return not there.issuperset(bootstrap.members)


def _furthest_voter(known: str, answers: Mapping[str, Answer]) -> set[str]:
    """The voter that has applied the most of the log, unless the known cluster version is final already."""
    voters = {name: answer for name, answer in answers.items() if not answer.is_learner}
    if is_agreed(known, (answer.version for answer in voters.values())):
        return set()
    return {max(voters, key=lambda name: (voters[name].applied, name))}


def _with_snapshots(member: Member, page: MetricsPage) -> Member:
    if member.answer is None or not has_old_entries(member.answer.version):
        return member
    return replace(member, snapshots=page.snapshots_saved)


def _with_proof(member: Member, page: MetricsPage) -> Member:
    if member.answer is not None or not _is_first_run(member):
        return member
    return replace(member, never_led=page.leaders_seen == 0)


def _is_first_run(member: Member) -> bool:
    pod = member.pod
    return pod is not None and bool(pod.ip) and pod.is_running and not pod.has_restarted
