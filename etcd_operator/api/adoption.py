"""The part of a spec that names a running etcd cluster to adopt, of both groups."""

import re
from typing import Literal

from etcd_operator.api.meta import Value

Mode = Literal["Complete", "Join", "Leave"]
"""How far an adoption goes. Complete: until only members of this resource are left. Join: they join, the
external members are kept. Leave: they leave again; possible until the first external member is removed."""


ENDPOINT = re.compile(r"http://([-.a-zA-Z0-9]+|\[[:0-9a-fA-F]+\]):[0-9]{1,5}/?")
ENDPOINT_FORM = (
    "must be the client URL of a member, with its port and without TLS, "
    "like http://my-etcd-0.my-etcd.ns.svc:2379"
)


class Adopt(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A running etcd cluster that the members of a resource join."""

    endpoints: tuple[str, ...]  #: The client URL of each member of the cluster to join.
    #: Complete (the default): the members of this resource join, then the external members are removed. Join:
    #: they join, and the external members are kept. Leave: they leave that cluster again; possible until the
    #: first external member is removed.
    mode: Mode = "Complete"


class SelfHosted(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The form of `Adopt` for a cluster with one member, in the group coreos.com."""

    boot_member_client_endpoint: str  #: The client URL of the only member of the cluster to join.
