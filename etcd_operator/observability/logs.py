"""Log lines that machines can search and people can read.

What it promises:

- One line of JSON per event in a pod, coloured text on a terminal; `event`, `level`, `logger` and `timestamp`
  (ISO 8601, UTC) are always present; an exception is one field, `exception`.
- Lines of the standard library's `logging` (urllib3, grpc) have the same format; other libraries log from
  WARNING.
- During a reconcile every line of that thread has controller, cluster and reconcile_id.
- Values under names like token, password, authorization or secret are redacted at any depth, as are bearer
  tokens and passwords in URLs anywhere.
- A value that JSON cannot represent never loses the line: it is written as text.

Not promised: that secrets under other names are found. Do not log them.
"""

import logging
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Literal, TextIO
from uuid import uuid4

import msgspec
import structlog
from structlog.contextvars import bound_contextvars, merge_contextvars
from structlog.typing import EventDict, Processor, WrappedLogger

from etcd_operator.keys import Key

Format = Literal["auto", "json", "console"]

_FOREIGN = ("urllib3", "kubernetes", "grpc")
_REDACTED = "[redacted]"
_DEPTH = 8  # nesting that is written; a value that contains itself ends here
_SECRET_NAME = re.compile(
    r"(token|password|passwd|authorization|secret|secret[_-]?access[_-]?key|(private|api)[_-]?key|credentials?)$",
    re.IGNORECASE,
)
_SECRET_TEXT = re.compile(r"(?i)(?<=\bbearer )[\w.~+/=-]+|(?<=://)[^/\s:@]*:[^/\s@]+(?=@)")


def configure(*, level: str = "INFO", form: Format = "auto", stream: TextIO | None = None) -> None:
    """Send all logging of the process to `stream` (standard error by default).

    `level` is a name of the standard library's. Replaces what an earlier call set up.
    """
    stream = stream or sys.stderr
    structlog.configure(
        processors=[*_describe(), structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = _Handler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*_describe(), structlog.stdlib.ExtraAdder()],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                _redact,
                _renderer(form, stream),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler, *(other for other in root.handlers if not isinstance(other, _Handler))]
    root.setLevel(level)
    for name in _FOREIGN:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


def reconcile_context(
    controller: str, *, subject: str = "cluster", new_id: Callable[[], str] = lambda: uuid4().hex[:12]
) -> Callable[[Key], AbstractContextManager[None]]:
    """A hook for the engine: binds controller, the key (named `subject`) and a fresh reconcile_id."""

    @contextmanager
    def around(key: Key) -> Iterator[None]:
        with bound_contextvars(controller=controller, reconcile_id=new_id(), **{subject: str(key)}):
            yield

    return around


class _Handler(logging.StreamHandler[TextIO]):
    """Our handler, distinct from those that others have added to the root logger."""


def _describe() -> list[Processor]:
    return [
        merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]


def _renderer(form: Format, stream: TextIO) -> Processor:
    if form == "console" or (form == "auto" and stream.isatty()):
        return structlog.dev.ConsoleRenderer(
            colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    return _render_json


def _redact(_logger: WrappedLogger, _method: str, line: EventDict) -> EventDict:
    return {name: _clean(value, name) for name, value in line.items()}


def _clean(value: object, name: str = "", depth: int = _DEPTH) -> Any:
    """`value` as plain data without secrets; keys and exceptions as readable text."""
    if _SECRET_NAME.search(name):
        return _REDACTED
    if depth == 0:
        return "..."
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return _SECRET_TEXT.sub(_REDACTED, value)
        case Key():
            return str(value)
        case Mapping():
            return {str(inner): _clean(item, str(inner), depth - 1) for inner, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_clean(item, depth=depth - 1) for item in value]
        case _:
            return _clean(_plain(value), depth=depth - 1)


def _plain(value: object) -> object:
    """Structs and dataclasses as mappings, everything else as text."""
    try:
        if isinstance(value, BaseException):
            return f"{type(value).__name__}: {value}"
        return msgspec.to_builtins(value, enc_hook=str)
    except Exception:  # noqa: BLE001 - whatever the value raises, the line must be written
        return f"<unprintable {type(value).__name__}>"


def _render_json(_logger: WrappedLogger, _method: str, line: EventDict) -> str:
    try:
        return msgspec.json.encode(line).decode()
    except (ValueError, OverflowError):  # half a surrogate pair, an integer beyond 64 bits
        return msgspec.json.encode({ascii(name): ascii(value) for name, value in line.items()}).decode()
