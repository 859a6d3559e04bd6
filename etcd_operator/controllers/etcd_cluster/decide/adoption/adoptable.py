"""Why a running cluster cannot be adopted: one sentence with what to do, the first reason that applies."""

from collections.abc import Callable
from ipaddress import ip_address
from urllib.parse import urlsplit

from semver import Version

from etcd_operator.api.definitions.limits import OLDEST_MINOR
from etcd_operator.controllers.etcd_cluster.decide.observation import listed
from etcd_operator.controllers.etcd_cluster.decide.replies import Answer, Silence
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade.skew import refusal as skew
from etcd_operator.etcd.values import EtcdMember, Refused

Answers = tuple[tuple[str, Answer], ...]

QUOTA = 2 << 30
"""Bytes of a database that our members take: etcd's default quota."""

LARGEST = QUOTA // 10 * 9
"""Bytes of a database that is adopted: it grows meanwhile."""


def answers(state: ClusterState) -> Answers:
    """The answers of the cluster's members, by endpoint."""
    return tuple((at, reply) for at, reply in state.endpoints if isinstance(reply, Answer))


def refusal(state: ClusterState) -> str:
    """Why; empty if nothing speaks against it."""
    found = answers(state)
    return (
        state.unconsented  # first: whether anything answers there is not for everyone to know
        or problems_of(state)
        or next((reason for check in _CHECKS if (reason := check(found))), "")
        or _without_quorum(state)
        or _too_few(state, found)
        or _skewed(state, found)
        or _clashing(state)
    )


def problems_of(state: ClusterState) -> str:
    """Which endpoints gave no answer of a member."""
    for at, reply in state.endpoints:
        if isinstance(reply, Silence):
            return f"no member of etcd answers at {at} over plain HTTP (TLS is not supported)"
        if isinstance(reply, Refused):
            return (
                f"the member at {at} requires authentication, and the operator is not a user: run "
                "`etcdctl auth disable` as root"
            )
    return ""


def _of_several(found: Answers) -> str:
    ids = {answer.cluster_id for _, answer in found}
    return f"the endpoints belong to different clusters ({', '.join(sorted(ids))})" if len(ids) > 1 else ""


def _with_learner(found: Answers) -> str:
    is_learning = any(answer.is_learner for _, answer in found)
    if not is_learning and not any(entry.is_learner for entry in _listed(found)):
        return ""
    return "the cluster to adopt has a learner: promote or remove it with `etcdctl member`"


def _in_disagreement(found: Answers) -> str:
    lists = {frozenset(entry.id for entry in answer.members) for _, answer in found}
    disagree = "the members of the cluster to adopt list different members: wait until they agree"
    return disagree if len(lists) != 1 else ""


def _incomplete(found: Answers) -> str:
    """Each member is probed and asked at an endpoint of its own, which must not lead to another one."""
    answered = [answer.member_id for _, answer in found]
    if len(set(answered)) < len(answered):
        return "several endpoints lead to the same member: name each member once"
    missing = [entry for entry in _listed(found) if entry.id not in answered]
    if not missing:
        return ""
    names = ", ".join(entry.name or entry.id for entry in missing)
    return (
        f"no endpoint leads to {names}: name the client URL of each member of the cluster; if a member never "
        f"comes back, remove it (etcdctl member remove {' or '.join(entry.id for entry in missing)}), or, "
        "without a quorum, restore a snapshot of a remaining member to a new cluster"
    )


def _unhealthy(found: Answers) -> str:
    ill = [at for at, answer in found if answer.is_unhealthy or answer.corrupt]
    return f"the members at {', '.join(ill)} report errors or an alarm" if ill else ""


def _unreachable(found: Answers) -> str:
    """Peer URLs that only their own machine can use, or that need TLS."""
    urls = [url for entry in _listed(found) for url in entry.peer_urls]
    local = [url for url in urls if _is_local(urlsplit(url).hostname or "")]
    if local:
        return (
            f"other machines cannot reach the peer URL {local[0]}: change it, with `etcdctl member update`, "
            "to a URL that pods can reach"
        )
    secured = [url for url in urls if not url.startswith("http://")]
    return f"the peer URL {secured[0]} is not plain HTTP: TLS is not supported" if secured else ""


def _unknown_version(found: Answers) -> str:
    versions = {answer.version for _, answer in found}
    strange = [text for text in sorted(versions) if not _is_known(text)]
    if strange:
        return (
            f"the version {strange[0]} of the cluster to adopt is not supported: it must be etcd "
            f"3.{OLDEST_MINOR} or later"
        )
    if len({Version.parse(text).minor for text in versions}) > 1:
        return (
            f"the members of the cluster to adopt run different versions ({', '.join(sorted(versions))}): "
            "finish its upgrade first"
        )
    return ""


def _too_large(found: Answers) -> str:
    """Ours have etcd's default quota: one that exceeds it raises an alarm that stops all writes."""
    if any(answer.is_out_of_space for _, answer in found):
        return (
            "the members of the cluster to adopt report that their quota is used up (alarm NOSPACE): compact "
            "and defragment their databases, then disarm the alarm"
        )
    large = [(at, answer.db_size) for at, answer in found if answer.db_size > LARGEST]
    if not large:
        return ""
    (at, size), *_ = large
    return (
        f"the database of the member at {at} has {size >> 20} MiB, and members of this resource accept no "
        f"writes once their database has {QUOTA >> 20} MiB: reduce the database of each member to "
        f"{LARGEST >> 20} MiB or less with `etcdctl compact` and `etcdctl defrag`"
    )


_CHECKS: tuple[Callable[[Answers], str], ...] = (
    _of_several,
    _with_learner,
    _in_disagreement,
    _incomplete,
    _unhealthy,
    _too_large,
    _unknown_version,
    _unreachable,
)


def _without_quorum(state: ClusterState) -> str:
    return "" if state.has_quorum else "no quorum of the cluster to adopt answers"


def _too_few(state: ClusterState, found: Answers) -> str:
    """With fewer members, ours would not be a quorum when the first external one is removed."""
    count = len(_listed(found))
    if state.desired.size >= count:
        return ""
    return (
        f"the cluster to adopt has {count} members, and this resource asks for {state.desired.size}: ask for "
        f"{count} or more, and reduce the number after the adoption"
    )


def _skewed(state: ClusterState, found: Answers) -> str:
    lowest = min(Version.parse(answer.version) for _, answer in found)
    return skew(lowest, Version.parse(state.desired.version))


def _clashing(state: ClusterState) -> str:
    if not state.clashes:
        return ""
    return (
        f"the peer URL {state.clashes[0]} of the cluster to adopt is one that a member of this resource "
        "would have: create the resource under another name"
    )


def _listed(found: Answers) -> tuple[EtcdMember, ...]:
    return listed([answer for _, answer in found])


def _is_known(version: str) -> bool:
    return Version.is_valid(version) and Version.parse(version).minor >= OLDEST_MINOR


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified
