"""What the operator must remember about a cluster because nothing else can tell it later.

Everything else is read live. These few facts stand in the status of both groups'
resources and are written before the act they describe.
"""

import msgspec

from etcd_operator.api.meta import Value


class Bootstrap(Value, frozen=True, kw_only=True):
    """How a cluster was founded; written before its first object is made.

    members: names of the initial members, in the order of their numbers.
    token: etcd's `--initial-cluster-token`.
    version: of etcd, that all initial members are started with; empty where that is not known.
    """

    members: tuple[str, ...]
    token: str
    version: str = ""


def repeated(token: str) -> str:
    """The token of a bootstrap that begins again because all members of the one before it are gone."""
    first, _, number = token.partition(AGAIN)
    return f"{first}{AGAIN}{int(number or 0) + 1}"


def is_repeated(token: str) -> bool:
    """Whether members of an earlier bootstrap are gone, with whatever clients may have written."""
    return AGAIN in token


AGAIN = "."
"""Between the UID of a resource, which has none, and the number of the bootstrap."""


class Recovery(Value, frozen=True, kw_only=True):
    """How data was, or is being, saved from a cluster that lost its quorum for good.

    Written before the first object is made for it. It is under way while the latched cluster
    ID is still the one that it replaces.

    generation: counts the recoveries of this resource, from 1; token: of the new cluster.
    survivor: whose data is taken; revision: the newest of the data that it had, as etcd counts;
    version: what it ran, which the seed starts with, whatever is asked for by then.
    seed: the first member of the new cluster. replaces: ID of the cluster that is given up; empty
    if its quorum came back in time, so that nothing was given up.
    """

    generation: int
    survivor: str
    revision: int
    version: str
    seed: str
    token: str
    replaces: str


REVISION_BUMP = 1_000_000_000
"""How far revisions jump at a recovery.

Further than a lost majority can have come: no revision is ever given twice, and a watcher that goes
on from the past is told `required revision has been compacted` instead of missing writes in silence.
"""


class Upgrade(Value, frozen=True, kw_only=True):
    """An upgrade under way; written before its first member is touched.

    origin: the lowest version that ran when it began. target: the version asked for.
    member: the one that is in hand: taken away for this upgrade, or about to be.
    since: when it began, RFC 3339; filled in when it is written.
    """

    origin: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")
    member: str = ""
    since: str = ""
