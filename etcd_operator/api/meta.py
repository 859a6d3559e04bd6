"""What every object carries: metadata, owner references, conditions.

Only the fields that the operator reads are declared; the rest of an object is never
written back (writes are patches), so nothing a user or another controller set is lost.
"""

from collections.abc import Collection, Iterable
from typing import Any, Literal

import msgspec

RawObject = dict[str, Any]
"""A piece of a pod or claim that is handed on to Kubernetes as it was written."""


class Value(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of all API values: frozen, camelCase on the wire, defaults left out when written."""


class OwnerReference(Value, frozen=True, kw_only=True):
    """Who an object belongs to."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(Value, frozen=True, kw_only=True):
    """The metadata of an object as the API server returned it."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def controller_uid(self) -> str:
        """The uid of the owner that controls this object; empty when there is none."""
        return next((owner.uid for owner in self.owner_references if owner.controller), "")


class Condition(Value, frozen=True, kw_only=True, omit_defaults=False):
    """A standard condition (metav1.Condition)."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str = ""
    last_transition_time: str = ""
    observed_generation: int = 0


def merge_conditions(
    previous: Iterable[Condition], wanted: Iterable[Condition], now: str, *, own: Collection[str]
) -> tuple[Condition, ...]:
    """Stamp `wanted` conditions: `lastTransitionTime` moves only when the status does.

    `now` is RFC 3339 in UTC. own: the types that are the operator's to write: of these, conditions of
    `previous` that are not wanted are dropped; those of other types are somebody else's and stay.
    """
    before = {condition.type: condition for condition in previous}

    def stamp(condition: Condition) -> Condition:
        old = before.get(condition.type)
        unchanged = old is not None and old.status == condition.status and old.last_transition_time
        since = old.last_transition_time if old is not None and unchanged else now
        return msgspec.structs.replace(condition, last_transition_time=since)

    stamped = tuple(stamp(condition) for condition in wanted)
    if unknown_members := {condition.type for condition in stamped} - set(own):
        raise ValueError(f"conditions that are not the operator's own: {sorted(unknown_members)}")
    return (*stamped, *(condition for kind, condition in before.items() if kind not in own))
