"""One request to the API server: its URL, its body, and its name in error messages."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

from etcd_operator.keys import Key
from etcd_operator.kube.connections import Abort
from etcd_operator.kube.resources import Resource


@dataclass(frozen=True, slots=True)
class Call:
    """One verb on one resource: its URL and its name in messages."""

    verb: str
    resource: Resource
    key: Key
    subresource: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    abort: Abort | None = None

    @property
    def target(self) -> str:
        """Path and query. A create is sent to the collection."""
        name = "" if self.verb == "create" else self.key.name
        path = self.resource.path(self.key.namespace, name, self.subresource)
        return f"{path}?{urlencode(self.query)}" if self.query else path

    @property
    def label(self) -> str:
        """`replace pods/status default/a`."""
        what = f"{self.resource}/{self.subresource}" if self.subresource else str(self.resource)
        return f"{self.verb} {what} {self.key}".rstrip(" /")
