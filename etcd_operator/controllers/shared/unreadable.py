"""Objects that have passes of their own, exist, and cannot be read: they must not look deleted.

A field may have the wrong shape: it was stored when the definition had another schema, or by hand while the
definition had none.
"""

from dataclasses import dataclass, field
from typing import Any

from etcd_operator.keys import Key
from etcd_operator.kube.events import Recorder, Reference
from etcd_operator.kube.informer import Informer

UNREADABLE = "ObjectUnreadable"


@dataclass(eq=False, kw_only=True)
class Unreadables:
    """Of one kind. Only passes over a key call this with it."""

    objects: Informer[Any]
    recorder: Recorder | None  # None where another controller reports them
    _reported: dict[Key, str] = field(default_factory=dict)

    def exists(self, key: Key) -> bool:
        """Whether the object exists and cannot be read now; an Event on it reports so, once."""
        found = self.objects.store.unreadable_at(key)
        if found is None:
            self._reported.pop(key, None)
            return False
        if self.recorder is not None and self._reported.get(key) != found.error:
            self._reported[key] = found.error
            resource = self.objects.resource
            about = Reference(
                api_version=resource.api_version,
                kind=resource.kind,
                namespace=key.namespace,
                name=key.name,
                uid=found.uid,
            )
            self.recorder.record(about, "Warning", UNREADABLE, f"{found.error}: nothing is changed")
        return True
