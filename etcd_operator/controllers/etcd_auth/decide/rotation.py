"""Which password an EtcdUser has, and when the next one follows: two users in etcd, in turn.

The connection Secret is the record: it has the user and the password that applications use, since when, and
for a moment the next ones. Each step is written there before etcd gets it, so no password is ever lost, and
two operators set the same one:

1. `PREPARE`: the Secret gets the next user and password, beside those in use.
2. etcd gets that user, with the same roles.
3. `PUBLISH`: the next user and password become those in use.
4. After the grace period the former user is deleted.

Applications need to have read the Secret again by then; until then both users are valid.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from etcd_operator.controllers.etcd_auth.decide.names import names_of, other_name

LONGEST_GRACE = timedelta(days=1)
"""For how long the former user is valid at most; also where passwords are not rotated any more."""


class Step(Enum):
    """What is written to the connection Secret, and when."""

    NOTHING = "nothing"
    CREATE = "create"  # before etcd is changed: there is none yet
    REPAIR = "repair"  # before etcd is changed: it has no user and password of this EtcdUser
    PREPARE = "prepare"  # before etcd is changed
    PUBLISH = "publish"  # once etcd is as planned


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What a connection Secret has; no password is here, only whether there is one."""

    username: str
    has_password: bool
    rotated_at: datetime | None
    next_username: str = ""
    has_next_password: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """What follows for one EtcdUser.

    current, following: users that etcd has to have. retiring: one that it keeps if it has it, until `until`.
    due: when the password is replaced. Empty and None for what there is not.
    """

    step: Step
    current: str
    following: str = ""
    retiring: str = ""
    until: datetime | None = None
    due: datetime | None = None


def rotation(user: str, found: Credentials | None, after: timedelta | None, now: datetime) -> Rotation:
    """What to do for the EtcdUser of this name. after: how long a password is used; None: for ever."""
    if found is None or not _is_usable(user, found):
        return Rotation(
            step=Step.REPAIR if found is not None else Step.CREATE,
            current=user,
            retiring=other_name(user, user),
            until=now + grace(after),
            due=now + after if after is not None else None,
        )
    current, since = found.username, found.rotated_at or now
    following = other_name(user, current)
    if found.next_username == following and found.has_next_password:
        return Rotation(step=Step.PUBLISH, current=current, following=following, due=now)
    due = since + after if after is not None else None
    if due is not None and now >= due:
        return Rotation(step=Step.PREPARE, current=current, following=following, due=now)
    until = since + grace(after)
    retiring = following if now < until else ""
    return Rotation(
        step=Step.NOTHING, current=current, retiring=retiring, until=until if retiring else None, due=due
    )


def grace(after: timedelta | None) -> timedelta:
    """How long the former user is valid."""
    return min(after / 2, LONGEST_GRACE) if after is not None else LONGEST_GRACE


def _is_usable(user: str, found: Credentials) -> bool:
    return found.username in names_of(user) and found.has_password and found.rotated_at is not None
