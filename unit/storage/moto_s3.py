"""moto's S3 as an app of our server. Its state is global."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from unit.storage.server import App, Request, Response, Server, serving


def app() -> App:
    from moto.server import create_backend_app

    wsgi: Any = create_backend_app("s3")

    def respond(request: Request) -> Response:
        status: list[int] = []
        headers: dict[str, str] = {}

        def start(line: str, pairs: list[tuple[str, str]], _: Any = None) -> None:
            status.append(int(line.split(maxsplit=1)[0]))
            headers.update(pairs)

        body = b"".join(wsgi(_environ(request), start))
        return Response(status=status[0], headers=headers, body=body)

    return respond


@contextmanager
def served(
    monkeypatch: pytest.MonkeyPatch, access_key: str = "planted-id", secret_key: str = "planted-secret"
) -> Iterator[Server]:
    """A server with one empty bucket, called `bucket`; the environment has credentials for it."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret_key)
    with serving(app()) as server:
        reset("bucket")
        yield server


def query(server: Server) -> str:
    """The options of a URL by which the bucket is reached there."""
    return f"endpoint={server.address}&disableSSL=true&region=us-east-1&s3ForcePathStyle=true"


def reset(bucket: str) -> None:
    """Nothing is left but one empty bucket."""
    _backend().reset()
    _backend().create_bucket(bucket, "us-east-1")


def uploads() -> list[str]:
    """Multipart uploads that were neither completed nor aborted."""
    return sorted(_backend().buckets["bucket"].multiparts)


def _backend() -> Any:
    from moto.core import DEFAULT_ACCOUNT_ID
    from moto.s3.models import s3_backends

    return s3_backends[DEFAULT_ACCOUNT_ID]["aws"]


def _environ(request: Request) -> dict[str, Any]:
    host, _, port = request.headers["host"].partition(":")
    environ = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": request.path,
        "RAW_URI": request.target,
        "REQUEST_URI": request.target,
        "QUERY_STRING": urlsplit(request.target).query,
        "CONTENT_TYPE": request.headers.get("content-type", ""),
        "CONTENT_LENGTH": str(len(request.body)),
        "SERVER_NAME": host,
        "SERVER_PORT": port or "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(request.body),
        "wsgi.errors": io.StringIO(),
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    named = ((name.upper().replace("-", "_"), value) for name, value in request.headers.items())
    return environ | {f"HTTP_{name}": value for name, value in named}
