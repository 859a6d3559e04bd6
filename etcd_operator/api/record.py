"""What the operator must remember about a cluster because nothing else can tell it later.

Everything else is read live. These few facts stand in the status of both groups'
resources and are written before the act they describe.
"""

from etcd_operator.api.meta import Value


class Bootstrap(Value, frozen=True, kw_only=True):
    """How a cluster was founded; written before its first object is made.

    members: names of the founders, in the order of their numbers.
    token: etcd's `--initial-cluster-token`.
    """

    members: tuple[str, ...]
    token: str
