"""URLs of backups: which store, and the name in it.

    file:///folder/name, or a path    a folder
    s3://bucket/name                  S3 and what is compatible with it
    gs://bucket/name                  Google Cloud Storage
    azblob://container/name           Azure Blob Storage

The query of `s3://` may have `region`, `endpoint` (host, host:port or URL), `s3ForcePathStyle` and
`disableSSL` (`true` or `false`), `sse` (`AES256` or `aws:kms`) and `sseKMSKeyID`. Other stores have no query.

A URL never contains credentials: each SDK finds them where it always does, in the environment or in
mounted files.
"""

import os
import re
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from etcd_operator.storage.errors import InvalidURL
from etcd_operator.storage.protocol import Store

STALL_SECONDS = 60.0
"""How long a store or etcd may make no progress."""

_OF_PROVIDERS = ("AWS_", "AZURE_", "GOOGLE_")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,220}[A-Za-z0-9]")


def open_store(url: str, *, stall: float = STALL_SECONDS) -> tuple[Store, str]:
    """The store of a URL and the name in it, "" if the URL is the store itself. Sends nothing.

    A name that ends with `/` is returned without it. The store of a path is the folder of its last component:
    `/backups/a.db` is `a.db` in `/backups`, and `/backups/` is that folder itself.

    `stall` is the time limit in seconds of every request to a service, which only progress extends: bytes
    that moved, a page that was listed. Raises `InvalidURL`, and `MissingSDK` if the package of that service
    is not installed.
    """
    parts = _split(url)
    if parts.scheme in ("", "file"):
        return _directory(parts)
    if parts.scheme not in ("s3", "gs", "azblob"):
        raise InvalidURL(f"No store has URLs that start with {parts.scheme}://. Use file, s3, gs or azblob.")
    if parts.query and parts.scheme != "s3":
        raise InvalidURL(f"A URL that starts with {parts.scheme}:// must not have options after '?'.")
    bucket, name = _bucket(parts)
    return _service(bucket, parts, stall), name


def _split(url: str) -> SplitResult:
    """The parts; a plain path has no scheme, and may contain any character."""
    if "://" not in url:
        return SplitResult("", "", url, "", "")
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise InvalidURL("The URL of the store is malformed. Write SCHEME://BUCKET/NAME.") from error
    if parts.username is not None or parts.password is not None:
        raise InvalidURL(
            "The URL of a store must not contain credentials. Use the environment or mounted files."
        )
    if parts.fragment:
        raise InvalidURL("The URL of a store must not have a part after '#'. Write '#' in a name as %23.")
    return parts


def _directory(parts: SplitResult) -> tuple[Store, str]:
    from etcd_operator.storage.directory import Directory

    if parts.netloc not in ("", "localhost") or parts.query:
        raise InvalidURL("The URL of a folder is file:///path, with three slashes and without a query.")
    path = unquote(parts.path) if parts.scheme else parts.path
    if not path or "\0" in path:
        raise InvalidURL("The path of the store is empty or contains a NUL. Name a folder or a file.")
    folder, _, name = path.rpartition("/")
    root = Path(folder or ("/" if path.startswith("/") else "."))
    if name in ("..", "."):
        root, name = root / name, ""
    return Directory(root), name


def _service(bucket: str, parts: SplitResult, stall: float) -> Store:
    _strip_variables()
    if parts.scheme == "s3":
        from etcd_operator.storage.s3 import S3
        from etcd_operator.storage.s3_client import parse_options

        return S3(bucket, parse_options(_query(parts)), stall=stall)
    if parts.scheme == "gs":
        from etcd_operator.storage.gcs import GCS

        return GCS(bucket, stall=stall)
    from etcd_operator.storage.azure import Azure

    return Azure(bucket, stall=stall)


def _strip_variables() -> None:
    """Remove the line break that a Secret made from a file has at its end, and that no credential has.

    With it, the SDKs send requests that a store refuses, or none at all.
    """
    for name, value in os.environ.items():
        if name.startswith(_OF_PROVIDERS) and value != value.strip():
            os.environ[name] = value.strip()


def _bucket(parts: SplitResult) -> tuple[str, str]:
    """Bucket and name of a URL."""
    if not _BUCKET.fullmatch(parts.netloc):
        raise InvalidURL(
            f"The URL of the store is {parts.scheme}://BUCKET/NAME: BUCKET has letters, digits, '-', '.' and "
            "'_', and no port."
        )
    return parts.netloc, unquote(parts.path).removeprefix("/").removesuffix("/")


def _query(parts: SplitResult) -> dict[str, str]:
    """The options of a URL, each once."""
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    if len(dict(pairs)) != len(pairs):
        raise InvalidURL("The URL of the store has an option twice.")
    return dict(pairs)
