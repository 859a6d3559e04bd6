"""From JSON to types, safely from many threads: the only place that has msgspec decode.

msgspec compiles a type when it is first decoded, and other threads see the unfinished result: two threads
that decode a type for the first time at once can end the process with SIGSEGV (0.22.0). So:

- `build_all` builds every struct of this package; `app` calls it before there is a second thread.
- Any other type is built under a lock, which is safe, too, but listed in `built_late`, so that tests notice a
  type that `build_all` does not find.
- Nothing else in this package decodes with msgspec (`unit/test_decoding.py` reads the sources).

Encoding builds nothing and is not restricted.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_PLAIN: tuple[Any, ...] = (dict[str, Any], dict[str, dict[str, Any]])
"""JSON objects without a struct in them."""

DEPTH = 12_000
"""How deep JSON may be nested, and a little for the calls around it."""

STACK = 16 * 2**20
"""Bytes of each thread's stack, of which only what is used is allocated. That depth needs less than 4 MiB."""

_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}
_late: list[str] = []
_lock = threading.Lock()
_is_complete = threading.Event()


def build_all() -> None:
    """Build the decoders of all structs of this package that are defined by now, for what Kubernetes stores.

    Go nests JSON 10,000 deep at most; Python's default is 1,000, which one object of a user could exceed.
    """
    sys.setrecursionlimit(DEPTH)
    threading.stack_size(STACK)
    for kind in (*_PLAIN, *_structs(msgspec.Struct)):
        decoder(kind)
    _is_complete.set()


def built_late() -> tuple[str, ...]:
    """The types that were first decoded after `build_all`, when other threads may have run."""
    return tuple(_late)


def decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """The JSON decoder of a type, built once: building costs more than using."""
    known = _decoders.get(kind)
    return known if known is not None else _build(kind)


def from_json(raw: bytes | str | msgspec.Raw, kind: type[T]) -> T:
    """JSON that anybody may have written.

    Raises `msgspec.DecodeError`, also if it is not UTF-8, or is nested deeper than Python allows.
    """
    try:
        return decoder(kind).decode(raw)
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from error


def read(raw: bytes | msgspec.Raw, kind: type[T]) -> T:
    """JSON that a program in Go wrote: as in Go, a field that is null is one that is not there.

    Go writes null for times, slices and maps without a value; which fields may be null is nowhere declared.
    Raises `msgspec.DecodeError`, of which `ValidationError` means: it does not fit the type, or is nested
    deeper than Python allows.
    """
    try:
        return _lenient(raw, kind)
    except RecursionError as error:
        raise msgspec.ValidationError("it is nested too deeply") from error


def _lenient(raw: bytes | msgspec.Raw, kind: type[T]) -> T:
    try:
        return decoder(kind).decode(raw)
    except msgspec.ValidationError:
        value = _without_nulls(decoder(dict[str, Any]).decode(raw))
    return decoder(kind).decode(msgspec.json.encode(value))


def _without_nulls(value: dict[str, Any]) -> dict[str, Any]:
    """The same value, changed in place, at any depth; what is null in a list remains."""
    pending: list[Any] = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, dict):
            for name in [name for name, part in each.items() if part is None]:
                del each[name]
            pending += each.values()
        elif isinstance(each, list):
            pending += each
    return value


def reported(message: str, kind: type[T]) -> T | None:
    """The document that a command left in the termination message of its container; None if that is none."""
    try:
        return from_json(message, kind)
    except msgspec.DecodeError:
        return None


def convert(value: Any, kind: type[T]) -> T:
    """The value in JSON that was read already. Raises `msgspec.ValidationError`."""
    decoder(kind)
    return msgspec.convert(value, kind)


def parsed(spec: Any, kind: type[T], problem: Callable[[T], str]) -> tuple[T, str] | tuple[None, str]:
    """A spec in JSON that was read already, or what is wrong with it; problem: with what its type allows."""
    try:
        value = convert(spec, kind)
    except msgspec.ValidationError as error:
        return None, f"spec: {error}"
    wrong = problem(value)
    return (None, wrong) if wrong else (value, "")


def _build(kind: Any) -> msgspec.json.Decoder[Any]:
    with _lock:
        if kind not in _decoders:
            if _is_complete.is_set():
                _late.append(str(kind))
            _decoders[kind] = msgspec.json.Decoder(kind)
        return _decoders[kind]


def _structs(base: type) -> Iterator[type]:
    package = __name__.partition(".")[0]
    kind: type
    for kind in base.__subclasses__():
        if kind.__module__.partition(".")[0] == package:
            yield kind
        yield from _structs(kind)
