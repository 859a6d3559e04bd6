import io
import json
import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from etcd_operator.errors import Conflict
from etcd_operator.keys import Key
from etcd_operator.observability import logs


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Logging is global to the process: put it back for the tests that follow."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers = handlers
    root.setLevel(level)
    for name in logs._FOREIGN:
        logging.getLogger(name).setLevel(logging.NOTSET)
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def out() -> io.StringIO:
    stream = io.StringIO()
    logs.configure(stream=stream)
    return stream


def lines(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def line(out: io.StringIO) -> dict[str, Any]:
    (only,) = lines(out)
    return only


def test_an_event_is_one_line_of_json_with_name_level_and_time(out: io.StringIO) -> None:
    structlog.get_logger("etcd_operator.controllers.etcd_cluster.decide").info("member added", size=3)
    written = line(out)
    stamp = datetime.fromisoformat(written.pop("timestamp"))
    assert stamp.tzinfo == UTC
    assert written == {
        "event": "member added",
        "level": "info",
        "logger": "etcd_operator.controllers.etcd_cluster.decide",
        "size": 3,
    }


@pytest.mark.parametrize(
    "logger", [logging.getLogger("a.b"), structlog.get_logger("a.b")], ids=["std", "structlog"]
)
def test_an_exception_is_one_field(logger: Any, out: io.StringIO) -> None:
    try:
        raise Conflict("moved")
    except Conflict:
        logger.exception("write failed")
    written = line(out)
    assert written["event"] == "write failed"
    assert written["exception"].startswith("Traceback")
    assert written["exception"].endswith("Conflict: moved")
    assert "exc_info" not in written


def test_lines_of_the_standard_library_carry_their_extra_fields(out: io.StringIO) -> None:
    logging.getLogger("urllib3").warning("retry %s", "failed", extra={"url": "/version"})
    written = line(out)
    assert (written["event"], written["level"], written["url"]) == ("retry failed", "warning", "/version")


def test_the_level_holds_for_both_kinds_of_loggers() -> None:
    out = io.StringIO()
    logs.configure(level="WARNING", stream=out)
    for logger in (structlog.get_logger("a"), logging.getLogger("a")):
        logger.info("unheard")
        logger.warning("heard")
    assert [written["event"] for written in lines(out)] == ["heard", "heard"]


@pytest.mark.parametrize("name", ["urllib3.connectionpool", "kubernetes.client", "grpc"])
def test_other_libraries_log_from_warning_on(name: str) -> None:
    out = io.StringIO()
    logs.configure(level="DEBUG", stream=out)
    logging.getLogger(name).info("unheard")
    logging.getLogger(name).warning("heard")
    assert [written["event"] for written in lines(out)] == ["heard"]


def test_configuring_again_replaces_the_earlier_output(out: io.StringIO) -> None:
    second = io.StringIO()
    logs.configure(stream=second)
    structlog.get_logger("a").info("once")
    assert out.getvalue() == ""
    assert len(lines(second)) == 1


@pytest.mark.parametrize(
    ("form", "stream", "is_json"),
    [
        ("auto", io.StringIO, True),
        ("auto", Terminal, False),
        ("json", Terminal, True),
        ("console", io.StringIO, False),
    ],
)
def test_a_terminal_gets_text_and_a_pod_json_unless_asked_otherwise(
    form: logs.Format, stream: type[io.StringIO], is_json: bool
) -> None:
    out = stream()
    logs.configure(form=form, stream=out)
    structlog.get_logger("a").info("hello", size=3)
    assert out.getvalue().startswith("{") == is_json
    assert ("\x1b[" in out.getvalue()) == (form == "auto" and stream is Terminal)


def test_a_console_shows_tracebacks() -> None:
    out = io.StringIO()
    logs.configure(form="console", stream=out)
    try:
        raise Conflict("moved")
    except Conflict:
        structlog.get_logger("a").exception("write failed")
    assert "Conflict: moved" in out.getvalue()


def test_lines_of_a_reconcile_carry_its_context_and_others_do_not(out: io.StringIO) -> None:
    around = logs.reconcile_context("etcdclusters", new_id=lambda: "id1")
    log = structlog.get_logger("a")
    with around(Key("default", "a")):
        log.info("inside")
        logging.getLogger("engine").info("inside too")
        other = threading.Thread(target=lambda: log.info("elsewhere"))
        other.start()
        other.join()
    log.info("after")
    inside, engine, elsewhere, after = lines(out)
    context = {"controller": "etcdclusters", "cluster": "default/a", "reconcile_id": "id1"}
    assert inside.items() >= context.items()
    assert engine.items() >= context.items()
    assert not elsewhere.keys() & context.keys()
    assert not after.keys() & context.keys()


def test_each_reconcile_has_an_id_of_its_own_and_names_its_subject(out: io.StringIO) -> None:
    around = logs.reconcile_context("etcdbackups", subject="backup")
    for _ in range(2):
        with around(Key("default", "nightly")):
            structlog.get_logger("a").info("inside")
    first, second = lines(out)
    assert first["backup"] == "default/nightly"
    assert first["reconcile_id"] != second["reconcile_id"]


@pytest.mark.parametrize(
    "name",
    [
        "token", "Password", "AUTHORIZATION", "secret", "bearer_token", "accessToken", "db-password",
        "aws_secret_access_key", "secretAccessKey", "private_key", "credentials",
    ],
)  # fmt: skip
def test_values_under_secret_names_are_not_written(name: str, out: io.StringIO) -> None:
    structlog.get_logger("a").info("hello", **{name: "hunter2"})
    logging.getLogger("a").info("hello", extra={name: "hunter2"})
    assert "hunter2" not in out.getvalue()
    assert [written[name] for written in lines(out)] == ["[redacted]"] * 2


@pytest.mark.parametrize("name", ["secret_name", "key", "tokens_left", "member"])
def test_names_that_only_resemble_secrets_are_written(name: str, out: io.StringIO) -> None:
    structlog.get_logger("a").info("hello", **{name: "etcd-tls"})
    assert line(out)[name] == "etcd-tls"


class Credentials(msgspec.Struct):
    password: str


@dataclass
class Login:
    token: str


@pytest.mark.parametrize(
    "value",
    [
        {"headers": [{"Authorization": "hunter2"}]},
        Credentials(password="hunter2"),
        [Login(token="hunter2")],
        "sent Bearer hunter2",
        "https://admin:hunter2@example.org/",
        Conflict("https://admin:hunter2@example.org/ answered 409"),
    ],
    ids=["nested", "struct", "dataclass", "bearer token", "url", "exception"],
)
def test_secrets_inside_of_values_are_not_written(value: object, out: io.StringIO) -> None:
    structlog.get_logger("a").info("hello", value=value)
    assert line(out)["value"]
    assert "hunter2" not in out.getvalue()


def test_secrets_in_messages_and_tracebacks_are_not_written(out: io.StringIO) -> None:
    try:
        raise Conflict("Authorization: Bearer hunter2")
    except Conflict:
        logging.getLogger("a").exception("GET https://admin:hunter2@example.org/")
    assert len(lines(out)) == 1
    assert "hunter2" not in out.getvalue()


def test_keys_errors_and_times_are_written_as_people_write_them(out: io.StringIO) -> None:
    structlog.get_logger("a").info(
        "hello",
        key=Key("default", "a"),
        error=Conflict("moved"),
        at=datetime(2026, 1, 1, tzinfo=UTC),
        all={1},
    )
    written = line(out)
    assert written["key"] == "default/a"
    assert written["error"] == "Conflict: moved"
    assert written["at"] == "2026-01-01T00:00:00Z"
    assert written["all"] == [1]


class Rude:
    def __str__(self) -> str:
        raise RuntimeError("leave me alone")


def own_tail() -> list[object]:
    ring: list[object] = []
    ring.append(ring)
    return ring


@pytest.mark.parametrize(
    "value",
    ["\ud800", 2**70, float("nan"), {Key("a", "b"): 1}, object(), Rude(), own_tail(), b"\xff"],
    ids=["surrogate", "huge", "nan", "odd key", "object", "rude", "cycle", "bytes"],
)
def test_an_odd_value_never_loses_the_line(value: object, out: io.StringIO) -> None:
    structlog.get_logger("a").info("hello", value=value)
    assert "value" in out.getvalue()
    assert len(lines(out)) == 1


scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)) | st.binary()
)


@given(
    st.recursive(
        scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec=None)), inner)
    )
)
def test_any_value_makes_one_line_of_json(value: object) -> None:
    rendered = logs._render_json(None, "info", logs._redact(None, "info", {"event": "x", "value": value}))
    assert isinstance(json.loads(rendered), dict)
    assert "\n" not in rendered
