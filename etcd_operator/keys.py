"""The name under which work is queued; never an event or an object."""

from typing import NamedTuple


class Key(NamedTuple):
    """`namespace/name` of an object; the namespace is empty for cluster-wide objects."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name
