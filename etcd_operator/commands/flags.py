"""Arguments that several commands have, and what they name: stores, encryption keys, programs of etcd."""

import argparse
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from etcd_operator.commands.outcome import UsageError
from etcd_operator.storage.urls import STALL_SECONDS, open_store

if TYPE_CHECKING:
    from etcd_operator.archive.keys import KeyRing
    from etcd_operator.storage.protocol import Store

OF_BACKUPS = "the keys of encrypted backups: a file with one key, or a folder of them"


def add_keys(parser: argparse.ArgumentParser, text: str = OF_BACKUPS) -> None:
    """The flag for keys; `text` describes what they are for."""
    parser.add_argument("--encryption-keys", type=Path, metavar="PATH", help=text)


def keys(options: argparse.Namespace) -> "KeyRing":
    """The keys that were named, or none. Raises `BadKey`."""
    from etcd_operator.archive.keys import KeyRing

    return KeyRing() if options.encryption_keys is None else KeyRing.read(options.encryption_keys)


def add_programs(parser: argparse.ArgumentParser, which: str) -> None:
    """The flags for the folder of etcd's programs. which: the programs, for people."""
    parser.add_argument(
        "--etcd-bin", type=Path, metavar="DIR", help=f"folder with {which} (default: the PATH)"
    )
    # For the pods that the operator makes: see `programs.folder_in_pod`.
    parser.add_argument("--etcd-in-pod", action="store_true", help=argparse.SUPPRESS)


def programs(options: argparse.Namespace) -> Path | None:
    """The folder of the programs; None for the PATH. Raises `ProgramMissing`."""
    from etcd_operator.archive.programs import folder_in_pod

    given: Path | None = options.etcd_bin
    return folder_in_pod() if options.etcd_in_pod else given


def add_log_format(parser: argparse.ArgumentParser) -> None:
    """The flag of commands that run in a pod until they are ended."""
    parser.add_argument(
        "--log-format",
        choices=("auto", "json", "console"),
        default="auto",
        help="auto is console on a terminal, else json",
    )


PLACES = """\
Where backups are stored:
  ./backups/one.db               a file
  s3://BUCKET/KEY?region=REGION  S3; for compatible stores also endpoint=URL and s3ForcePathStyle=true
  gs://BUCKET/KEY                Google Cloud Storage
  azblob://CONTAINER/KEY         Azure Blob Storage
"""


@dataclass(frozen=True, slots=True)
class Place:
    """A store, and a name or a prefix in it; `is_folder`: everything below the prefix ("" for all)."""

    store: "Store"
    name: str
    is_folder: bool


def open_place(url: str) -> Place:
    """The place that `url` names; a folder if it ends with / or is a folder of this machine.

    Raises `StoreError`.
    """
    # Path.is_dir raises an error if it may not ask.
    if not url.endswith("/") and os.path.isdir(_local_path(url)):  # noqa: PTH112
        url += "/"
    store, name = open_store(url, stall=STALL_SECONDS)
    path = url.partition("?")[0] if "://" in url else url
    return Place(store, name, not name or path.endswith("/"))


def open_folder(url: str) -> Place:
    """A folder, or a prefix of a bucket: buckets have no folders, so nothing needs to exist below it.

    Raises `StoreError`, and `UsageError` for a file of this machine. A folder of this machine that does not
    exist raises `BucketMissing` when it is used.
    """
    is_local = "://" not in url or url.startswith("file://")
    if is_local and os.path.isfile(_local_path(url)):  # noqa: PTH113 -- Path.is_file raises an error, too
        raise UsageError(f"{url} is a file: name its folder")
    return open_place(f"{url}/" if is_local and url else url)


def _local_path(url: str) -> str:
    return unquote(url.removeprefix("file://")) if url.startswith("file://") else url


def open_backup(url: str) -> Place:
    """The place of one backup. Raises `StoreError`, and `UsageError` for a folder."""
    place = open_place(url)
    if place.is_folder:
        raise UsageError(f"{url} is a folder: name one backup in it, see `etcd-operator list`")
    return place


def new_name(store: "Store", prefix: str, now: datetime, *, is_framed: bool) -> str:
    """A name that is not taken, from the time; `.db` can be used by etcdutl as it is, `.backup` cannot."""
    from etcd_operator.archive.manifest import manifest_name

    suffix = ".backup" if is_framed else ".db"
    stem = f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    stem = f"{prefix}/{stem}" if prefix else stem
    number, name = 1, stem + suffix
    while store.stat(name) is not None or store.stat(manifest_name(name)) is not None:
        number += 1
        name = f"{stem}-{number}{suffix}"
    return name
