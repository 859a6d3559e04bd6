"""Azure Blob Storage as far as stores use it: block blobs of one container."""

import base64
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from unit.storage.server import Request, Response

_RANGE = re.compile(r"bytes=(\d+)-(\d+)$")


@dataclass(kw_only=True)
class Blob:
    data: bytes
    etag: str
    modified: str
    metadata: dict[str, str]


@dataclass
class FakeAzure:
    """The container; `account` is the first part of each path, as of an emulator."""

    account: str
    container: str
    blobs: dict[str, Blob] = field(default_factory=dict)
    blocks: dict[tuple[str, str], bytes] = field(default_factory=dict)  # staged, by blob and block ID
    folders: frozenset[str] = frozenset()  # of a hierarchical namespace, which lists them
    page: int = 3
    versions: int = 0

    def reset(self) -> None:
        self.blobs, self.blocks, self.folders = {}, {}, frozenset()

    def __call__(self, request: Request) -> Response:
        match = re.match(rf"/{self.account}/([^/]+)(?:/(.+))?$", request.path)
        if match is None or match[1] != self.container:
            return _error(404, "ContainerNotFound")
        if match[2] is None:
            return self._list(request)
        if request.method == "PUT":
            return self._put(match[2], request)
        blob = self.blobs.get(match[2])
        return self._of_blob(match[2], blob, request) if blob else _error(404, "BlobNotFound")

    def _put(self, name: str, request: Request) -> Response:
        if request.query["comp"] == "block":
            self.blocks[name, request.query["blockid"]] = request.body
            return Response(status=201)
        assert request.query["comp"] == "blocklist"
        if request.headers.get("if-none-match") == "*" and name in self.blobs:
            return _error(409, "BlobAlreadyExists")
        named = [each.text or "" for each in ElementTree.fromstring(request.body)]
        if any((name, block) not in self.blocks for block in named):
            return _error(400, "InvalidBlockList")
        self._commit(name, named, request)
        return Response(status=201, headers=_headers(self.blobs[name]))

    def _commit(self, name: str, named: list[str], request: Request) -> None:
        self.versions += 1
        prefix = "x-ms-meta-"
        self.blobs[name] = Blob(
            data=b"".join(self.blocks[name, block] for block in named),
            etag=f'"{self.versions}"',
            modified=format_datetime(datetime.now(UTC), usegmt=True),
            metadata={
                key.removeprefix(prefix): value
                for key, value in request.headers.items()
                if key.startswith(prefix)
            },
        )
        self.blocks = {key: data for key, data in self.blocks.items() if key[0] != name}

    def _of_blob(self, name: str, blob: Blob, request: Request) -> Response:
        if request.headers.get("if-match", blob.etag) != blob.etag:
            return _error(412, "ConditionNotMet")
        if request.method == "DELETE":
            del self.blobs[name]
            return Response(status=202)
        match = _RANGE.match(request.headers.get("x-ms-range", request.headers.get("range", "")))
        if request.method == "HEAD" or match is None:
            length = {"Content-Length": str(len(blob.data))}
            return Response(status=200, headers={**_headers(blob), **length}, body=blob.data)
        start, end = int(match[1]), min(int(match[2]) + 1, len(blob.data))
        headers = {**_headers(blob), "Content-Range": f"bytes {start}-{end - 1}/{len(blob.data)}"}
        return Response(status=206, headers=headers, body=blob.data[start:end])

    def _list(self, request: Request) -> Response:
        prefix, after = request.query.get("prefix", ""), request.query.get("marker", "")
        names = sorted(name for name in self.blobs if name.startswith(prefix) and name > after)
        more = names[self.page - 1] if len(names) > self.page else ""
        folders = "".join(map(_folder, self.folders))
        entries = "".join(_entry(name, self.blobs[name]) for name in names[: self.page])
        body = (
            '<?xml version="1.0" encoding="utf-8"?>'
            f'<EnumerationResults ServiceEndpoint="x" ContainerName="{self.container}">'
            f"<Blobs>{folders}{entries}</Blobs><NextMarker>{escape(more)}</NextMarker></EnumerationResults>"
        )
        return Response(status=200, headers={"Content-Type": "application/xml"}, body=body.encode())


def _headers(blob: Blob) -> dict[str, str]:
    metadata = {f"x-ms-meta-{name}": value for name, value in blob.metadata.items()}
    return {"ETag": blob.etag, "Last-Modified": blob.modified, "x-ms-blob-type": "BlockBlob", **metadata}


def _entry(name: str, blob: Blob) -> str:
    return (
        f"<Blob><Name>{escape(name)}</Name><Properties><Last-Modified>{blob.modified}</Last-Modified>"
        f"<Etag>{escape(blob.etag)}</Etag><Content-Length>{len(blob.data)}</Content-Length>"
        "<BlobType>BlockBlob</BlobType></Properties></Blob>"
    )


def _folder(name: str) -> str:
    blob = Blob(data=b"", etag='"0"', modified=format_datetime(datetime.now(UTC), usegmt=True), metadata={})
    metadata = "<Metadata><hdi_isfolder>true</hdi_isfolder></Metadata></Blob>"
    return _entry(name, blob).removesuffix("</Blob>") + metadata


def _error(status: int, code: str) -> Response:
    body = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{code}</Message></Error>'
    headers = {"x-ms-error-code": code, "Content-Type": "application/xml"}
    return Response(status=status, headers=headers, body=body.encode())


def key() -> str:
    """A key of an account, in the form that the SDK needs."""
    return base64.b64encode(b"planted-secret").decode()
