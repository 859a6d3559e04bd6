"""From the API server's JSON to the types that callers name.

Promises: only the declared fields are read; collections are decoded object by object, so one
that does not fit its type, or of which too much would be kept, affects no other; what every object has (name,
namespace, version) is readable even then.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
import structlog

from etcd_operator.decoding import read
from etcd_operator.keys import Key
from etcd_operator.kube.resources import Resource

T = TypeVar("T")

LARGEST = 64 << 10
"""Bytes of one object, as JSON with the fields of its type.

A thousand of them fit into memory, twice during a list. A cluster with affinities and all conditions has 10
KiB.
"""

log = structlog.get_logger()


class _Meta(msgspec.Struct, rename="camel"):
    """What is read of the metadata of every list and object; only a list has a token."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    continue_token: str = msgspec.field(name="continue", default="")
    uid: str = ""
    labels: dict[str, str] = {}
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None

    @property
    def key(self) -> Key:
        """Where the object is."""
        return Key(self.namespace, self.name)


class ListPage(msgspec.Struct):
    """One page of a list, its objects still as JSON."""

    metadata: _Meta
    items: list[msgspec.Raw] | None = None


class Partial(msgspec.Struct):
    """What every object has; readable also where the rest of the object is not."""

    metadata: _Meta = msgspec.field(default_factory=_Meta)


class ApiResources(msgspec.Struct):
    """The discovery document of one group and version."""

    resources: list[dict[str, Any]] = []


class ServerVersion(msgspec.Struct):
    """The answer to `/version`."""

    major: str
    minor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """An object that exists and does not fit its type."""

    key: Key
    labels: dict[str, str]
    error: str  # why it does not fit; it names the field
    uid: str = ""
    created: str = ""  # RFC 3339
    is_deleting: bool = False


def decode_each(resource: Resource, items: list[msgspec.Raw], kind: type[T]) -> Iterator[T | Unreadable]:
    """Each object as its type, or what is known of one that does not fit it (and is logged)."""
    for raw in items:
        try:
            yield fitting(raw, kind)
        except msgspec.ValidationError as error:
            yield unreadable(resource, raw, error)


def fitting(raw: msgspec.Raw, kind: type[T]) -> T:
    """An object as its type. Raises `msgspec.ValidationError`, also if it is larger than `LARGEST`."""
    value = read(raw, kind)
    if len(raw) > LARGEST and (kept := len(msgspec.json.encode(value))) > LARGEST:
        raise msgspec.ValidationError(f"it is too large: {kept} bytes, of {LARGEST} at most")
    return value


def unreadable(resource: Resource, raw: msgspec.Raw, error: Exception) -> Unreadable:
    """Log that an object does not fit its type and is skipped; what is known of it: its key may be empty."""
    metadata = partial(raw).metadata
    found = Unreadable(
        key=metadata.key,
        labels=metadata.labels if len(raw) <= LARGEST else {},
        error=str(error),
        uid=metadata.uid,
        created=metadata.creation_timestamp,
        is_deleting=metadata.deletion_timestamp is not None,
    )
    log.warning("object_unreadable", resource=str(resource), object=str(found.key), error=found.error)
    return found


def partial(raw: msgspec.Raw) -> Partial:
    """What can be read of any object; empty if not even that."""
    try:
        return read(raw, Partial)
    except msgspec.ValidationError:
        return Partial()
