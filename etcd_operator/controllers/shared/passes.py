"""What passes over the objects of one kind have in common: how they begin, fail, and are reported."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from etcd_operator.controllers.shared.caches import Object
from etcd_operator.controllers.shared.failures import Failures
from etcd_operator.controllers.shared.objects import Objects
from etcd_operator.controllers.shared.unreadable import Unreadables
from etcd_operator.controllers.shared.writes import Writes
from etcd_operator.engine.controller import Result
from etcd_operator.keys import Key
from etcd_operator.kube.events import EventType, Recorder, Reference
from etcd_operator.kube.informer import Informer


@dataclass(frozen=True, kw_only=True)
class Passes(Generic[Object]):
    """The passes of one controller over its own kind of object."""

    objects: Informer[Object]
    writes: Writes
    failures: Failures
    unreadables: Unreadables
    recorder: Recorder

    def over(
        self, key: Key, run: Callable[[Object, Objects], Result], gone: Callable[[Key], object]
    ) -> Result:
        """One pass: `run` if the object exists, `gone` if it does not. Raises what is worth another try."""
        if self.unreadables.exists(key):
            return Result()
        found = self.objects.store.get(key)
        if found is None:
            self.failures.passed(key)
            gone(key)
            return Result()
        return self.writes.pass_over(key, lambda objects: run(found, objects))

    def event(self, about: Object, kind: EventType, reason: str, message: str) -> None:
        """An Event on an object."""
        self.recorder.record(Reference.to(self.objects.resource, about.metadata), kind, reason, message)
