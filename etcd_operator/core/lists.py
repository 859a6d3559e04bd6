"""Whose member list is believed, and who votes by it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from etcd_operator.core.desired import PersistedState
from etcd_operator.core.replies import Answer, EtcdMember

NEEDED_REPORTS = 2
"""How many members have to list a voter as such; all of them, where fewer report a list."""


def of_one_history(persisted: PersistedState, answers: Mapping[str, Answer]) -> dict[str, Answer]:
    """The answers (by member) that count; during a recovery those of seeds of earlier attempts do not.

    Such a seed never served anybody.
    """
    recovery = persisted.recovery
    if recovery is None or not persisted.is_recovering:
        return dict(answers)
    return {
        name: answer
        for name, answer in answers.items()
        if name == recovery.seed or answer.cluster_id == recovery.replaces
    }


def authoritative(persisted: PersistedState, answers: Iterable[Answer]) -> list[Answer]:
    """The answers whose member list counts: those of the cluster on record, if any of it answers.

    But never those of the old cluster once the new one reports its list.
    """
    answers = list(answers)
    known = [answer for answer in answers if answer.cluster_id == persisted.cluster_id]
    if persisted.recovery is None or (known and not persisted.is_recovering):
        return known or answers
    new = [answer for answer in answers if answer.cluster_id != persisted.recovery.replaces]
    return new or answers


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
