"""Fetches the backup that a seed starts from: from a backup tool, or from where it is stored.

Promises: the file appears under its name only when every byte is checked; a file of that name is replaced;
a tool that is not there yet, or ends in the middle, is asked again until `PATIENCE` is over.
"""

import hashlib
import http.client
import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from etcd_operator.api.meta import Value
from etcd_operator.archive.errors import Damaged, NotABackup
from etcd_operator.archive.fetch import fetch
from etcd_operator.archive.keys import KeyRing
from etcd_operator.clock import Clock
from etcd_operator.errors import InvalidSpec, TerminalError
from etcd_operator.pods import client
from etcd_operator.pods.client import NoReport, TokenRefused
from etcd_operator.pods.http_client import Download, Server
from etcd_operator.pods.reports import BackupReport
from etcd_operator.programs.backup_tool.inventory import Inventory, refusal
from etcd_operator.storage.protocol import Store
from etcd_operator.storage.urls import STALL_SECONDS
from etcd_operator.versions import minors_that_start_on, parse_version, starts_on

PATIENCE = 300.0
RETRY_SECONDS = 1.0
_BLOCK = 1 << 18


class SeedError(TerminalError):
    """There is no backup that the seed can start from."""


class _Again(Exception):
    """The tool may answer a later request."""


class Fetched(Value, frozen=True, kw_only=True):
    """What a seed starts from. time: RFC 3339. damaged: names of newer backups that are not whole."""

    name: str
    time: str = ""
    revision: int = 0
    etcd_version: str = ""
    sha256: str = ""
    damaged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FromTool:
    """A backup tool, or a reader of a survivor. wait: for a number of seconds.

    keys: of the new cluster; if there are any, the newest backup has to be encrypted with one of them.
    """

    server: Server
    keys: KeyRing
    clock: Clock
    wait: Callable[[float], None]

    def fetch(self, file: Path, *, etcd_version: str, name: str = "", sha256: str = "") -> Fetched:
        """The backup of that name, or the newest that is whole. Raises `SeedError` when that is in vain."""
        if name:
            chosen = Fetched(name=name, sha256=sha256)
        else:
            chosen = self._patiently(lambda: self._newest(etcd_version))
        self._patiently(lambda: self._download(chosen, file))
        return chosen

    def _newest(self, etcd_version: str) -> Fetched:
        try:
            found = client.restorable(self.server, "")
        except TokenRefused as error:
            raise SeedError(f"the backup tool: {error}") from error
        except NoReport as error:
            raise _Again(str(error)) from error
        if not found.is_checked:
            raise _Again("it has not read all that is stored")
        newest = found.newest
        if newest is None:
            raise _none(found.damaged)
        why = newest.refusal or (refusal(newest.key_id, self.keys) if self.keys.ids else "")
        if why:
            raise _refused(newest.name, why)
        _check_version(newest.etcd_version, etcd_version)
        return _fetched(newest, found.damaged)

    def _patiently(self, work: Callable[[], "Fetched"]) -> Fetched:
        end = self.clock.monotonic() + PATIENCE
        while True:
            try:
                return work()
            except _Again as error:
                if self.clock.monotonic() >= end:
                    raise SeedError(f"the backup tool does not answer: {error}") from error
            self.wait(RETRY_SECONDS)

    def _download(self, chosen: Fetched, file: Path) -> Fetched:
        connection = Download(self.server, timeout=STALL_SECONDS)
        headers = {"Authorization": f"Bearer {self.server.token}"}
        try:
            with closing(connection):
                connection.request("GET", f"/v1/backup?name={quote(chosen.name)}", headers=headers)
                self._receive(connection.getresponse(), chosen, file)
        except (OSError, http.client.HTTPException) as error:
            raise _Again(str(error) or type(error).__name__) from error
        return chosen

    def _receive(self, response: http.client.HTTPResponse, chosen: Fetched, file: Path) -> None:
        if response.status >= 500:
            raise _Again(f"it answered with {response.status}")
        if response.status != 200:
            quote = response.read(client.LONGEST_QUOTE).decode("utf-8", "replace").strip()
            raise SeedError(f"the backup tool answered with {response.status} ({quote})")
        partial = file.with_name(f"{file.name}.partial")
        with _opened(partial) as target:
            digest = _copied(response, target)
        if digest != chosen.sha256:
            raise SeedError(f"the backup {chosen.name} is not the one that was verified: it was replaced")
        partial.replace(file)


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("wb")
    except OSError as error:
        raise SeedError(f"cannot write {path}: {error.strerror}") from error


def _copied(response: http.client.HTTPResponse, target: BinaryIO) -> str:
    """The SHA-256 of what came. Raises `http.client.IncompleteRead` if that is not all."""
    digest = hashlib.sha256()
    expected, count = response.length, 0
    while block := response.read(_BLOCK):
        digest.update(block)
        count += len(block)
        try:
            target.write(block)
        except OSError as error:
            raise SeedError(f"the snapshot cannot be written: {error.strerror}") from error
    if expected is None or count < expected:
        raise http.client.IncompleteRead(b"")
    target.flush()
    os.fsync(target.fileno())
    return digest.hexdigest()


def from_store(store: Store, found: Inventory, file: Path, keys: KeyRing, *, etcd_version: str) -> Fetched:
    """The newest backup that is whole. Raises `SeedError`, the errors of `fetch` and of the store.

    found: listed with the same keys. What they refuse is never passed over for an older one.
    """
    damaged: list[str] = []
    if found.refused is not None:
        raise _refused(str(found.refused.name), found.refused.refusal)
    for backup in found.backups:
        if backup.refusal:
            raise _refused(str(backup.name), backup.refusal)
        _check_version(backup.manifest.etcd_version, etcd_version)
        file.unlink(missing_ok=True)
        try:
            fetch(store, backup.path, file, keys)
        except (Damaged, NotABackup):
            damaged.append(str(backup.name))
        else:
            return _fetched(backup.report(), tuple(damaged))
    raise _none(tuple(damaged))


def _fetched(backup: BackupReport, damaged: tuple[str, ...]) -> Fetched:
    return Fetched(
        name=backup.name,
        time=backup.time,
        revision=backup.revision,
        etcd_version=backup.etcd_version,
        sha256=backup.sha256,
        damaged=damaged,
    )


def _refused(name: str, why: str) -> SeedError:
    return SeedError(f"the backup {name} is not restored: {why}, or move it away with its manifest")


def _none(damaged: tuple[str, ...]) -> SeedError:
    if damaged:
        return SeedError(f"no backup is intact (damaged: {', '.join(damaged)})")
    return SeedError("there is no backup")


def _check_version(backup: str, etcd_version: str) -> None:
    """Raise `SeedError` unless this version of etcd may be started on a backup of the other one."""
    try:
        wanted, stored = str(parse_version(etcd_version)), str(parse_version(backup))
    except InvalidSpec as error:
        raise SeedError(f"{error}: set spec.version accordingly") from error
    if not starts_on(wanted, stored):
        raise SeedError(
            f"the newest backup is of etcd {backup}: use {minors_that_start_on(stored)}, not "
            f"{etcd_version}: set spec.version accordingly"
        )
