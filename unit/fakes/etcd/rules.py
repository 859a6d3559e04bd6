"""When etcd refuses a change of its members, in its own words (3.5 to 3.7); empty where it does not.

`connected`: voters that the member which was asked has been connected to for 5 s, itself included.
"""

from etcd_operator.controllers.etcd_cluster.decide.members import quorum

UNHEALTHY = "unhealthy cluster"
NOT_ENOUGH_STARTED = "re-configuration failed due to not enough started members"
TOO_MANY_LEARNERS = "too many learner members in cluster"
NOT_A_LEARNER = "can only promote a learner member"
NOT_IN_SYNC = "can only promote a learner member which is in sync with leader"
NOT_FOUND = "member not found"
URL_EXISTS = "Peer URLs already exists"


def refuses_learner(*, voters: int, connected: int, learners: int) -> str:
    """Whether a learner is not added: one at a time, and only while a quorum is connected with it counted."""
    if voters > 1 and connected < quorum(voters + 1):
        return UNHEALTHY
    return TOO_MANY_LEARNERS if learners else ""


def refuses_removal(*, is_active: bool, others: int, started: int, connected: int) -> str:
    """Whether a voter is kept; learners may always be removed.

    is_active: it is connected itself. others: the other voters; started: those of them that ever were.
    """
    if started < quorum(others):
        return NOT_ENOUGH_STARTED
    return UNHEALTHY if is_active and connected - 1 < quorum(others) else ""


def refuses_promotion(*, is_learner: bool, is_in_sync: bool) -> str:
    """Whether a member is not made a voter."""
    if not is_learner:
        return NOT_A_LEARNER
    return "" if is_in_sync else NOT_IN_SYNC
