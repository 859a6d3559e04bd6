"""Real stores as processes on loopback: the S3 gateway and the GCS emulator of `hack/cluster`.

Requests pass a server of ours, which misbehaves on request (`unit.storage.server`).
"""

import http.client
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from e2e.support.buckets import S3Bucket
from e2e.support.ports import free_port
from localcluster import tools
from localcluster.paths import Cache
from unit.storage.cases import SECRET, Case, Make, gcs_case, s3_case
from unit.storage.server import App, Request, Response, serving

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": SECRET}
_CACHE = Cache.of_user()  # before a test changes HOME
_MEBIBYTE = 1024 * 1024
_START_SECONDS = 60.0
_REQUEST_SECONDS = 20.0
_PER_CONNECTION = {"connection", "keep-alive", "transfer-encoding"}


def versitygw(root: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack) -> Case:
    """An S3 gateway in front of a folder."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "")  # the gateway refuses those that it does not know
    bucket, port = root / "versitygw" / "bucket", free_port()
    bucket.mkdir(parents=True)
    program = _Program(
        path=_CACHE.tool(tools.VERSITYGW, "versitygw"),
        arguments=(f"--port=127.0.0.1:{port}", "--health=/health", "--quiet", "posix", str(bucket.parent)),
        environment={"ROOT_ACCESS_KEY_ID": "key", "ROOT_SECRET_ACCESS_KEY": SECRET},
        port=port,
        health="/health",
    )
    stack.enter_context(_running(program, root))
    return s3_case(
        stack.enter_context(serving(_forwarding(port))),
        reset=lambda: _empty(bucket),
        unfinished=S3Bucket(f"http://127.0.0.1:{port}", "bucket", CREDENTIALS).unfinished,
        part=5 * _MEBIBYTE,  # the least that S3 accepts for a part that is not the last
        is_flat=False,
    )


def fake_gcs_server(root: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack) -> Case:
    """An emulator of Google Cloud Storage in front of a folder.

    It does not list its upload sessions. A question for the state of one completes it with what is there.
    """
    bucket, port = root / "fake-gcs-server" / "bucket", free_port()
    bucket.mkdir(parents=True)
    where = ("-scheme=http", "-host=127.0.0.1", f"-port={port}", f"-filesystem-root={bucket.parent}")
    program = _Program(
        path=_CACHE.tool(tools.FAKE_GCS_SERVER, "fake-gcs-server"),
        arguments=("-log-level=warn", *where),
        port=port,
        health="/_internal/healthcheck",
    )
    stack.enter_context(_running(program, root))
    server = stack.enter_context(serving(_forwarding(port)))
    about = {"reset": lambda: _empty(bucket), "unfinished": list, "is_flat": False, "continues": False}
    return gcs_case(server, monkeypatch, **about)


REAL: dict[str, Make] = {"versitygw": versitygw, "fake-gcs-server": fake_gcs_server}


def _empty(bucket: Path) -> None:
    """Remove what is in a bucket; its own folder has attributes that the store needs."""
    for path in bucket.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Program:
    """How to start a store; `health` is the path that answers 200 as soon as it serves."""

    path: Path
    arguments: tuple[str, ...]
    port: int
    health: str
    environment: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def _running(program: _Program, root: Path) -> Iterator[None]:
    """The program serves while the block runs."""
    if not program.path.exists():
        pytest.fail(f"there is no {program.path}; run: hack/cluster build --with stores")
    log = root / f"{program.path.name}.log"
    command = [str(program.path), *program.arguments]
    environment = {**os.environ, **program.environment}
    with (
        log.open("w") as output,
        subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT) as process,
    ):
        try:
            _await(lambda: _is_healthy(process, program), f"{program.path.name} does not serve; see {log}")
            yield
        finally:
            process.terminate()


def _is_healthy(process: subprocess.Popen[bytes], program: _Program) -> bool:
    assert process.poll() is None, f"{program.path.name} has ended"
    request = Request(method="GET", target=program.health, headers={}, body=b"")
    try:
        return _exchange(program.port, request).status == 200
    except ConnectionRefusedError:
        return False


def _await(condition: Callable[[], bool], complaint: str) -> None:
    end = time.monotonic() + _START_SECONDS
    while not condition():
        assert time.monotonic() < end, complaint
        time.sleep(0.05)


def _forwarding(port: int) -> App:
    """Sends each request on as it is, with the host that the client named: it is part of the signature."""
    return lambda request: _exchange(port, request)


def _exchange(port: int, request: Request) -> Response:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_REQUEST_SECONDS)
    try:
        names = set(request.headers) - _PER_CONNECTION - {"expect"}
        headers = {name: request.headers[name] for name in names} | {"connection": "close"}
        connection.request(request.method, request.target, body=request.body or None, headers=headers)
        reply = connection.getresponse()
        kept = {name: value for name, value in reply.getheaders() if name.lower() not in _PER_CONNECTION}
        return Response(status=reply.status, headers=kept, body=reply.read())
    finally:
        connection.close()
