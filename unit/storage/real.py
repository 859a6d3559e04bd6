"""Real stores as processes on loopback: the S3 gateway and the GCS emulator of `hack/cluster`.

Requests pass a server of ours, which misbehaves on request (`unit.storage.server`).
"""

import http.client
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from etcd_operator.storage.protocol import Store
from etcd_operator.storage.urls import open_store
from localcluster import tools
from localcluster.paths import Cache
from unit.storage.cases import SECRET, Case, Make, finishes_s3
from unit.storage.server import App, Request, Response, serving

_CACHE = Cache.of_user()  # before a test changes HOME
_MEBIBYTE = 1024 * 1024
_START_SECONDS = 30.0
_REQUEST_SECONDS = 20.0
_PER_CONNECTION = {"connection", "keep-alive", "transfer-encoding"}


def versitygw(root: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack) -> Case:
    folder = root / "versitygw"
    bucket = folder / "bucket"
    bucket.mkdir(parents=True)
    port = _free_port()
    command = [
        _CACHE.tool(tools.VERSITYGW, "versitygw"),
        *("--port", f"127.0.0.1:{port}", "--health", "/health", "--quiet", "posix", folder),
    ]
    account = {"ROOT_ACCESS_KEY_ID": "key", "ROOT_SECRET_ACCESS_KEY": SECRET}
    stack.enter_context(_running(command, account, port, "/health", root / "versitygw.log"))
    server = stack.enter_context(serving(_forwarding(port)))

    def at(address: str, stall: float, name: str = "bucket") -> Store:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
        url = f"s3://{name}/?endpoint=http://{address}&s3ForcePathStyle=true&disableSSL=true"
        return open_store(url, stall=stall)[0]

    return Case(
        at=at,
        open=cache(lambda name, stall: at(server.address, stall, name)),
        reset=lambda: _empty(bucket),
        unfinished=lambda: _uploads(f"http://127.0.0.1:{port}"),
        server=server,
        part=5 * _MEBIBYTE,  # the least that S3 accepts for a part that is not the last
        is_flat=False,
        starts=lambda r: r.method == "POST" and "uploads" in r.query,
        sends=lambda r: r.method == "PUT" and "partNumber" in r.query,
        finishes=finishes_s3,
        reads=lambda r: r.method == "GET" and "list-type" not in r.query,
        lists=lambda r: "list-type" in r.query,
    )


REAL: dict[str, Make] = {"versitygw": versitygw}


def _uploads(endpoint: str) -> list[str]:
    """Multipart uploads that were neither completed nor aborted, as the gateway lists them."""
    import boto3

    client: Any = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="key",
        aws_secret_access_key=SECRET,
    )
    found = client.list_multipart_uploads(Bucket="bucket")
    client.close()
    return [upload["UploadId"] for upload in found.get("Uploads", ())]


def _empty(bucket: Path) -> None:
    """Remove what is in a bucket; its own folder has attributes that the store needs."""
    for path in bucket.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


@contextmanager
def _running(
    command: list[Any], environment: Mapping[str, str], port: int, health: str, log: Path
) -> Iterator[None]:
    """The program answers on `health` while the block runs."""
    if not Path(command[0]).exists():
        pytest.fail(f"there is no {command[0]}; run: hack/cluster build --with stores")
    with (
        log.open("w") as output,
        subprocess.Popen(
            command, env={**os.environ, **environment}, stdout=output, stderr=subprocess.STDOUT
        ) as process,
    ):
        try:
            _await(lambda: _is_healthy(process, port, health), f"{command[0]} does not serve; see {log}")
            yield
        finally:
            process.terminate()


def _is_healthy(process: subprocess.Popen[bytes], port: int, health: str) -> bool:
    assert process.poll() is None, "it has ended"
    try:
        return _exchange(port, Request(method="GET", target=health, headers={}, body=b"")).status == 200
    except ConnectionRefusedError:
        return False


def _await(condition: Callable[[], bool], complaint: str) -> None:
    end = time.monotonic() + _START_SECONDS
    while not condition():
        assert time.monotonic() < end, complaint
        time.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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
