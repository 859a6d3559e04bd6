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
    """endpoints: the client URL of each member of the cluster, like `http://10.0.0.1:2379`."""

    endpoints: tuple[str, ...]
    mode: Mode = "Complete"


class SelfHosted(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The coreos.com form of the same for a cluster of one member."""

    boot_member_client_endpoint: str
