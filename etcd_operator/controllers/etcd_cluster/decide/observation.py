"""Joins Kubernetes objects with the replies of etcd: who the members are, and how.

Members are the union of the names of objects and etcd's member list. An etcd member that has not
started has no name yet and is matched by its peer URL.

Where members report different lists, `authoritative` and `listed` decide which one is believed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from etcd_operator.controllers.etcd_cluster.decide import metrics_pages
from etcd_operator.controllers.etcd_cluster.decide.adoption import external_answers
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster, PersistedState
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.replies import Answer, Reply, Silence
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.decide.clusters import is_member_name, ordinal_of
from etcd_operator.etcd.values import EtcdMember, MetricsPage, Refused

NEEDED_REPORTS = 2
"""How many members have to list a voter as such; all of them, where fewer report a list."""

NOBODY: Mapping[str, Reply] = MappingProxyType({})

NameAt = Callable[[str], str]
"""The name of the member that peers reach at that URL; empty if no member can be there."""


def observed(
    desired: DesiredCluster,
    objects: Mapping[str, Member],
    replies: Mapping[str, Reply],
    pages: Mapping[str, MetricsPage],
    *,
    external: Mapping[str, Reply] = NOBODY,
    name_at: NameAt,
) -> ClusterState:
    """Join them, all by member name. What neither objects nor replies show has its default.

    objects: members with their Kubernetes objects only.
    replies: of those that were asked. pages: those that were read (see `metrics_pages.needed`).
    external: what was replied by external members, by endpoint (see `adoption.external_answers`).
    name_at: the name of the member with that peer URL.
    """
    answers = _own_answers(desired.persisted, replies, name_at)
    # A learner reports no list, so it cannot be authoritative however far its log has come.
    with_ours = external_answers.have_joined(desired, objects.values())
    sought, rejections = external_answers.with_external(desired, objects.values(), external)
    theirs, rejected = external_answers.own_answers(sought, external, with_ours=with_ours)
    reporting = [answer for answer in (*answers.values(), *theirs.values()) if answer.members]
    found = listed(authoritative(desired.persisted, reporting))
    others = external_answers.external(sought, found, theirs)
    ids = {member.id for member in others}
    entries, unknown = _named(desired, tuple(entry for entry in found if entry.id not in ids), name_at)
    names = sorted({*objects, *entries}, key=ordinal_of)
    members = tuple(
        _joined(
            objects.get(name) or Member(name=name),
            entries.get(name),
            answers.get(name),
            replies.get(name),
            name_at=name_at,
        )
        for name in names
    )
    return ClusterState(
        desired=desired,
        members=metrics_pages.with_pages(desired, members, pages),
        unknown_members=unknown,
        external=others,
        endpoints=tuple(external.items()),
        rejected=tuple((rejected | rejections).items()),
        clashes=_clashes(desired, external.values(), name_at),
        cluster_version=metrics_pages.cluster_version(desired, pages),
        is_version_hidden=metrics_pages.is_version_hidden(pages),
    )


def _clashes(desired: DesiredCluster, replies: Iterable[Reply], name_at: NameAt) -> tuple[str, ...]:
    """The peer URLs in a cluster to be adopted that members of this one would have, too."""
    if desired.persisted.is_bootstrapped:
        return ()
    entries = (entry for reply in replies if isinstance(reply, Answer) for entry in reply.members)
    urls = {url for entry in entries for url in entry.peer_urls}
    return tuple(sorted(url for url in urls if is_member_name(name_at(url), desired.name)))


def conflict(desired: DesiredCluster) -> str:
    """Why a resource may not use its names, beside one of the other API group that takes precedence."""
    return (
        f"the EtcdCluster {desired.name} of the other API group has precedence: "
        "delete one of the two, or give this one another name"
    )


def _own_answers(
    persisted: PersistedState, replies: Mapping[str, Reply], name_at: NameAt
) -> dict[str, Answer]:
    """The answers that the members themselves gave, and that belong to the history that counts."""
    answers = {name: reply for name, reply in replies.items() if isinstance(reply, Answer)}
    own = {name: answer for name, answer in answers.items() if _is_itself(name, answer, name_at)}
    return of_one_history(persisted, own)


def _is_itself(name: str, answer: Answer, name_at: NameAt) -> bool:
    """Whether the member with this name answered, and not another one that was given its old address."""
    if answer.is_learner:
        return True
    entry = next((entry for entry in answer.members if entry.id == answer.member_id), None)
    return entry is not None and name in map(name_at, entry.peer_urls)


def _named(
    desired: DesiredCluster, found: tuple[EtcdMember, ...], name_at: NameAt
) -> tuple[dict[str, EtcdMember], tuple[EtcdMember, ...]]:
    """The entries of etcd's list by the names of our members, and the entries of unknown members."""
    named = _name_there if desired.persisted.is_adopting else _name_of
    names = {entry.id: named(entry, name_at) for entry in found}
    entries = {names[entry.id]: entry for entry in found if is_member_name(names[entry.id], desired.name)}
    return entries, tuple(entry for entry in found if entry not in entries.values())


def _name_of(entry: EtcdMember, name_at: NameAt) -> str:
    """The name that the entry has, or, before its member has started, the one that its peer URL gives."""
    return entry.name or _name_there(entry, name_at)


def _name_there(entry: EtcdMember, name_at: NameAt) -> str:
    """The name that its peer URL gives.

    During an adoption only that: external members may have names like ours, also those that their manager
    adds, of which nothing is on record.
    """
    return next(map(name_at, entry.peer_urls), "")


def _joined(
    member: Member,
    entry: EtcdMember | None,
    answer: Answer | None,
    reply: Reply | None,
    *,
    name_at: NameAt,
) -> Member:
    urls = entry.peer_urls if entry is not None else ()
    return replace(
        member,
        entry=entry,
        is_listed_elsewhere=bool(urls) and member.name not in map(name_at, urls),
        answer=answer,
        refusal=reply if isinstance(reply, Refused) else None,
        silent_for=reply.seconds if isinstance(reply, Silence) else 0.0,
    )


def of_one_history(persisted: PersistedState, answers: Mapping[str, Answer]) -> dict[str, Answer]:
    """The answers (by member) that count; during a recovery those of seeds of earlier attempts do not.

    Such a seed never served anybody.
    """
    recovery = persisted.recovery_under_way
    if recovery is None:
        return dict(answers)
    return {
        name: answer
        for name, answer in answers.items()
        if name == recovery.seed or answer.cluster_id in recovery.given_up_ids
    }


def authoritative(persisted: PersistedState, answers: Iterable[Answer]) -> list[Answer]:
    """The answers whose member list counts: those of the cluster on record, if any of it answers.

    During a recovery those of the old cluster, until the new one reports its list; afterwards never again:
    its members may still run for a while, and do not list the new ones, whose data would be deleted.
    """
    answers, recovery = list(answers), persisted.recovery_under_way
    if recovery is not None:
        new = [answer for answer in answers if answer.cluster_id not in recovery.given_up_ids]
        return new or [answer for answer in answers if recovery.gives_up(answer.cluster_id)]
    known = [answer for answer in answers if answer.cluster_id == persisted.cluster_id]
    return known or [answer for answer in answers if answer.cluster_id not in persisted.given_up_ids]


def is_own_quorum(state: ClusterState) -> bool:
    """Whether a quorum that was proven may be that of the cluster on record.

    Members of a cluster that was given up, which still run, prove one of their own; so may an external member
    whose answer does not count. Nobody reports who proved it, so a quorum has to follow one leader then.
    """
    given_up = state.persisted.given_up_ids
    others = any(m.answer is not None and m.answer.cluster_id in given_up for m in state.members)
    return not (others or state.rejected) or state.follows_one_leader


def listed(answers: Sequence[Answer]) -> tuple[EtcdMember, ...]:
    """The list of the member that has seen the most of the log; empty if nobody reports one.

    A member is a voter once two of them list it as one. A single member that has applied a promotion may
    be lost the next moment, and with it what was decided by the new vote.
    """
    reporting = [answer for answer in answers if answer.members]
    best = max(reporting, key=lambda answer: answer.committed, default=None)
    if best is None:
        return ()
    same = [answer for answer in reporting if answer.cluster_id == best.cluster_id]
    votes = [entry.id for answer in same for entry in answer.members if not entry.is_learner]
    needed = min(NEEDED_REPORTS, len(same))
    return tuple(
        replace(entry, is_learner=entry.is_learner or votes.count(entry.id) < needed)
        for entry in best.members
    )
