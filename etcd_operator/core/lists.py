"""Which of the members' own lists of members is believed."""

from collections.abc import Sequence
from dataclasses import replace

from etcd_operator.core.replies import Answer, EtcdMember

NEEDED_REPORTS = 2
"""How many members have to list a voter as such; all of them, where fewer report a list."""


def listed(answers: Sequence[Answer]) -> tuple[EtcdMember, ...]:
    """The list of the member that has seen the most of the log; empty if nobody reports one.

    A member is a voter once two of them say so. One that alone has applied a promotion may be gone
    the next moment, and what was decided on the new vote with it.
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
