"""What every store can do, and which names objects can have: relative paths of plain components.

One contract test covers all stores (unit/storage/test_contract.py).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from etcd_operator.storage.errors import InvalidURL


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """An object in a store: its name below the root (bucket, container or folder), its size in bytes, and the
    time (UTC) at which it was written, by the clock of the store.
    """

    name: str
    size: int
    modified: datetime


class Store(Protocol):
    """Objects under names, each whole or not there. Not for use by several threads at once.

    A name is a path without a leading `/` (`check_name`). Every method raises `StoreError`: for a
    bucket or folder that does not exist, a missing right, a store that is not reached, and if nothing moves
    for the time limit of the store. Generators raise while they are iterated, not when they are made.
    """

    def put(self, name: str, chunks: Iterable[bytes]) -> None:
        """Store the chunks, of any size, under a name that is not taken (`NameTaken` otherwise, perhaps
        before a chunk was read).

        The object becomes visible, whole and durable, only after `chunks` ended without an error. Any error,
        also of `chunks` (which propagates unchanged), leaves nothing visible, and discards what was
        transferred. The one exception: if a service stops answering during the request that makes the object
        visible, the result is unknown; the object may be there, and is whole then.

        Memory: a few parts of 8 MiB, whatever the size of the object. `chunks` is iterated by the calling
        thread, while another one sends.
        """
        ...

    def read(self, name: str, offset: int = 0) -> Iterator[bytes]:
        """The bytes from `offset` on; nothing if there are none. Raises `ObjectMissing`.

        Continues by itself where a connection broke, and never mixes two objects of one name.
        """
        ...

    def list(self, prefix: str) -> Iterator[Stored]:
        """All objects below `prefix` + `/`, in no particular order; "" stands for all.

        `a` lists neither the object `a` nor `a-b/c`. Contains no object whose `put` has not returned or
        failed with an unknown result.
        """
        ...

    def stat(self, name: str) -> Stored | None:
        """The object of that name, or None if there is none."""
        ...

    def delete(self, name: str) -> None:
        """Remove the object; success if there is none."""
        ...


# Files of a folder that are being written. No object can have such a name, and no list contains one.
PARTIAL_PREFIX = ".etcd-operator-partial-"

_LONGEST_NAME = 1024  # bytes, the limit of S3 and GCS
_LONGEST_COMPONENT = 255  # bytes, the limit of most filesystems


def check_name(name: str) -> str:
    """The name, if it can be an object's in every store; `InvalidURL` otherwise."""
    reason = _objection(name)
    if reason:
        raise InvalidURL(f"The name {name!r} cannot be used in a store: {reason}. Choose another name.")
    return name


def check_prefix(prefix: str) -> str:
    """The prefix with its separator, or "" for all; `InvalidURL` for one that no name can have."""
    return check_name(prefix.removesuffix("/")) + "/" if prefix else ""


def _objection(name: str) -> str:
    if not name:
        return "it is empty"
    if len(name.encode("utf-8", "surrogatepass")) > _LONGEST_NAME:
        return f"it is longer than {_LONGEST_NAME} bytes"
    if not name.isprintable():
        return "it contains a character that cannot be printed"
    return next(filter(None, map(_component_objection, name.split("/"))), "")


def _component_objection(component: str) -> str:
    if component in ("", ".", ".."):
        return "it starts or ends with '/', or contains '//', '.' or '..' as a component"
    if len(component.encode()) > _LONGEST_COMPONENT:
        return f"a component is longer than {_LONGEST_COMPONENT} bytes"
    if component.startswith(PARTIAL_PREFIX):
        return f"a component starts with {PARTIAL_PREFIX!r}, which marks unfinished files"
    return ""
