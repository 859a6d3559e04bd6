"""The parts that all objects share: metadata, owner references, conditions.

Only the fields that the operator reads are declared. It never writes back the rest of an object
(writes are patches), so nothing that a user or another controller set is lost.
"""

import re
from collections.abc import Collection, Iterable
from typing import Annotated, Any, Literal, Protocol, TypeVar

import msgspec

from etcd_operator.decoding import from_json
from etcd_operator.keys import Key

LONGEST_MESSAGE = 4096
"""Characters of the message of a condition: what others write, and it quotes, may be longer."""

_NUMBERS = re.compile(r"[0-9a-f.:-]*\d[0-9a-f.:-]*")

RawObject = dict[str, Any]
"""A part of a pod or claim that is passed to Kubernetes unchanged."""


def of_schema(schema: str | type) -> msgspec.Meta:
    """Gives a raw field the schema of a type of Kubernetes, by its name, or of a struct."""
    return msgspec.Meta(extra={"schema": schema})


Affinity = Annotated[RawObject, of_schema("Affinity")]
SecurityContext = Annotated[RawObject, of_schema("PodSecurityContext")]
RecordedSpec = Annotated[RawObject, of_schema("BackupSpec")]
"""The spec of an EtcdBackup, in the status of what is restored from it."""


class Value(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of all API values: immutable, camelCase in JSON, defaults omitted when written."""


def written_if_zero() -> int:
    """The default 0 of a field that is written all the same: a column is blank where its field is missing.

    msgspec omits only the defaults that it can compare without calling a factory.
    """
    default: int = msgspec.field(default_factory=int)
    return default


class OwnerReference(Value, frozen=True, kw_only=True):
    """An owner of an object."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False


_T = TypeVar("_T")
_Few = Annotated[_T, msgspec.Meta(max_length=256)]
"""What has more is not read: the API server limits the size of these only together with the object."""


class ObjectMeta(Value, frozen=True, kw_only=True):
    """The metadata of an object as returned by the API server."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    labels: _Few[dict[str, str]] = {}
    annotations: _Few[dict[str, str]] = {}
    finalizers: _Few[tuple[str, ...]] = ()
    owner_references: _Few[tuple[OwnerReference, ...]] = ()

    @property
    def key(self) -> Key:
        """Its namespace and name."""
        return Key(self.namespace, self.name)

    @property
    def is_deleting(self) -> bool:
        """Whether its deletion has begun."""
        return self.deletion_timestamp is not None

    @property
    def controller_uid(self) -> str:
        """The UID of the controlling owner; empty if there is none."""
        return next((owner.uid for owner in self.owner_references if owner.controller), "")


OUR_ANNOTATIONS = ("etcd.", "coreos.com/")
"""How the names of all annotations begin that the operator reads or writes."""


class Lean(Value, frozen=True, kw_only=True):
    """An object of which caches keep many: without annotations that are not ours, which may have 256 KiB.

    So an update must not replace all of its annotations: it would remove the others.
    """

    metadata: ObjectMeta

    def __post_init__(self) -> None:
        found = self.metadata.annotations
        ours = {name: value for name, value in found.items() if name.startswith(OUR_ANNOTATIONS)}
        if len(ours) < len(found):
            metadata = msgspec.structs.replace(self.metadata, annotations=ours)
            msgspec.structs.force_setattr(self, "metadata", metadata)


class Stored(Lean, frozen=True, kw_only=True):
    """A resource as users write it. Its spec is kept as JSON: Python objects need ten times the memory."""

    stored_spec: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"{}"), name="spec")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not bytes(self.stored_spec).startswith(b"{"):
            raise ValueError("Expected `object` - at `$.spec`")
        # What is decoded is a part of a whole page of a list, which would be kept with it.
        msgspec.structs.force_setattr(self, "stored_spec", self.stored_spec.copy())

    @property
    def spec(self) -> RawObject:
        """The spec, decoded anew each time."""
        return from_json(self.stored_spec, RawObject)


AnyCondition = TypeVar("AnyCondition", bound=Any)
"""A condition of any object; of those of one object, no two have the same type."""


class HasMetadata(Protocol):
    """Any object as read."""

    @property
    def metadata(self) -> ObjectMeta:
        """Its metadata."""


class Condition(Value, frozen=True, kw_only=True, omit_defaults=False):
    """A standard condition (metav1.Condition)."""

    type: str  #: The type of the condition.
    status: Literal["True", "False", "Unknown"]  #: True, False or Unknown.
    reason: str  #: The reason for the status, in one word, for programs.
    message: str = ""  #: The reason for the status, in a sentence.
    last_transition_time: str = ""  #: When the status last changed.
    observed_generation: int = 0  #: The generation of the spec that the condition is based on.


def condition_of(conditions: Iterable[AnyCondition], kind: str) -> AnyCondition | None:
    """The condition of that type, if there is one."""
    return next((each for each in conditions if each.type == kind), None)


def condition(kind: str, *, holds: bool | None, reason: str, message: str, generation: int) -> Condition:
    """A condition, not yet stamped with its time. holds: None for unknown."""
    return Condition(
        type=kind,
        status="Unknown" if holds is None else "True" if holds else "False",
        reason=reason,
        message=message,
        observed_generation=generation,
    )


def without_numbers(message: str) -> str:
    """What messages have in common that differ in times, ports or durations only: each would be a write."""
    return _NUMBERS.sub("", message)


def merge_conditions(
    previous: Iterable[Condition], wanted: Iterable[Condition], now: str, *, own: Collection[str]
) -> tuple[Condition, ...]:
    """`wanted` with times: `lastTransitionTime` changes only when the status does.

    `now` is RFC 3339 in UTC. own: the types that the operator writes. Conditions of these types in `previous`
    that are not wanted are dropped; conditions of other types belong to others and are kept.
    """
    before = {condition.type: condition for condition in previous}

    def stamp(condition: Condition) -> Condition:
        old = before.get(condition.type)
        unchanged = old is not None and old.status == condition.status and old.last_transition_time
        since = old.last_transition_time if old is not None and unchanged else now
        message = condition.message[:LONGEST_MESSAGE]
        return msgspec.structs.replace(condition, message=message, last_transition_time=since)

    stamped = tuple(stamp(condition) for condition in wanted)
    if foreign := {condition.type for condition in stamped} - set(own):
        raise ValueError(f"conditions that are not the operator's own: {sorted(foreign)}")
    return (*stamped, *(condition for kind, condition in before.items() if kind not in own))
