"""How often something is observed that causes no event, such as an etcd that begins to serve.

Often at first, because clients wait. What has taken long already will take longer: it is observed ever more
rarely, so that a hundred clusters whose volumes cannot be attached do not use up the workers.
"""

from etcd_operator.controllers.etcd_cluster.decide.members import Member

STEP = 0.1
"""Seconds between observations while a member starts or catches up."""

BOOTSTRAP_POLL = 0.15
"""Seconds between observations of a bootstrap: etcd's first answer causes no event."""

RECHECK = 2.0
"""Seconds between observations of a cluster that is not healthy, or for which somebody else has to act."""

LONGEST = 2.0
"""Seconds between observations of a member that starts, at most."""

SHARE = 1 / 40
"""What an observation may come late, as a share of the time for which it was waited."""


def pause(member: Member, least: float) -> float:
    """Seconds until a member that starts is observed again. least: those right after it was created."""
    creating_for = member.pod.creating_for if member.pod is not None else 0.0
    return min(LONGEST, max(least, SHARE * max(creating_for, member.silent_for)))
