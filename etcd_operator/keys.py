"""The name under which work is queued: never an event, never an object."""

from typing import NamedTuple


class Key(NamedTuple):
    """Where an object is: `namespace/name`; the namespace is empty for cluster-wide objects."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name
