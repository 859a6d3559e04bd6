"""The test restore: a backup is proven when an etcd serves it.

    1. read the backup back into a scratch directory, with all checks of `verify`
    2. `etcdutl snapshot restore`, with etcd's own check of the hash
    3. scan the restored database: revision and number of keys as in the manifest
    4. start etcd on it, alone, on the loopback address: a read with its quorum, and the revision
    5. compare the HashKV that this etcd computes with the one that etcdutl computes from the snapshot

The scratch directory and the processes are removed however this ends, unless this process is killed by
SIGKILL. Only this process can connect to the restored etcd, with a certificate of its own.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import msgspec

from etcd_operator.archive.database import DatabaseScan
from etcd_operator.archive.errors import BackupError, NotRestorable, ProgramFailed
from etcd_operator.archive.manifest import Manifest
from etcd_operator.archive.programs import Programs, last_line, run, started, time_limit
from etcd_operator.errors import OperatorError
from etcd_operator.etcd.channel import Channels, TlsCredentials
from etcd_operator.etcd.client import EtcdClient

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Certificate:
    """The files for the server, and what a client needs."""

    file: Path
    key: Path
    client: TlsCredentials


def make_certificate(folder: Path) -> Certificate:
    """Write a certificate for the loopback address to `folder`; the clock may be set back a day.

    It is the CA, and the certificate of server and client. It names the user root: a backup of a cluster with
    authentication enabled is read with it.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    from cryptography.x509.oid import NameOID

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "root")])
    certificate = (
        x509.CertificateBuilder(issuer_name=name, subject_name=name, public_key=key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=7))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address(LOOPBACK))]), critical=False)
        .sign(key, SHA256())
    )
    pem = certificate.public_bytes(Encoding.PEM)
    key_pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file, key_file = folder / "certificate.pem", folder / "key.pem"
    for path, data in ((file, pem), (key_file, key_pem)):
        with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as output:
            output.write(data)
    return Certificate(file, key_file, TlsCredentials(ca=pem, certificate=pem, key=key_pem))


NAME = "trial"
_STARTS = 3
_BLOCK = 1 << 20
_RESERVE = 256 << 20
"""Bytes that a member needs beside its database, most of them for its log."""


class Trial(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the restored etcd served."""

    etcd_version: str
    revision: int
    keys: int
    hash: int = msgspec.field(name="hashKV")
    has_compared_hash: bool = msgspec.field(name="hashKVCompared")  # false if etcdutl is older than 3.6
    seconds: float


@contextlib.contextmanager
def scratch(parent: Path | None, manifest: Manifest) -> Iterator[Path]:
    """A directory for one test restore, removed at the end. Raises `BackupError` without space."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="etcd-trial-", dir=parent))
    except OSError as error:
        raise BackupError(
            f"cannot create a scratch directory{f' in {parent}' if parent else ''}: {error.strerror}. "
            "Pass --scratch-dir DIR with a folder that can be written"
        ) from error
    try:
        needed, free = 2 * manifest.size + _RESERVE, shutil.disk_usage(folder).free
        if needed > free:
            raise BackupError(
                f"a test restore needs {needed >> 20} MiB, and {folder.parent} has {free >> 20} MiB free: "
                "pass --scratch-dir DIR with more space"
            )
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def trial(
    folder: Path,
    snapshot: Iterable[bytes],
    manifest: Manifest,
    programs: Programs,
    *,
    on_stage: Callable[[str], None] = lambda _text: None,
) -> Trial:
    """Restore `snapshot` in the scratch directory `folder`, and compare what etcd serves with `manifest`.

    on_stage: called with what is done next, for people.
    Raises the errors of `snapshot`, `NotRestorable`, `ProgramFailed`, and `BackupError` if the disk is full.
    """
    begin = time.monotonic()
    file = folder / "snapshot.db"
    try:
        with file.open("wb") as output:
            output.writelines(snapshot)
        on_stage(f"restoring with etcdutl {programs.version}")
        _restore(folder, file, manifest, programs)
        expected_revision = _compare_database(folder / NAME / "member" / "snap" / "db", manifest)
        expected = _hash_of(folder, file, manifest, programs)
        file.unlink()
        on_stage(f"starting etcd {programs.version}")
        revision, served = _serve(folder, manifest, programs)
    except OSError as error:
        raise BackupError(f"cannot restore in {folder.parent}: {error.strerror or error}") from error
    if revision != expected_revision:
        raise NotRestorable(f"the restored etcd has revision {revision}, not {expected_revision}")
    if expected is not None and served != expected:
        raise NotRestorable(f"the restored etcd has the HashKV {served}, the snapshot {expected}")
    return Trial(
        etcd_version=programs.version,
        revision=revision,
        keys=manifest.keys,
        hash=served,
        has_compared_hash=expected is not None,
        seconds=round(time.monotonic() - begin, 3),
    )


def _restore(folder: Path, file: Path, manifest: Manifest, programs: Programs) -> None:
    command = [str(programs.etcdutl), "snapshot", "restore", str(file), "--data-dir", str(folder / NAME)]
    command += ["--name", NAME, "--initial-cluster", f"{NAME}=https://{LOOPBACK}:1"]
    command += ["--initial-advertise-peer-urls", f"https://{LOOPBACK}:1"]
    try:
        run(command, folder=folder, log=folder / "restore.log", limit=time_limit(manifest.size))
    except ProgramFailed as error:
        raise NotRestorable(f"the snapshot cannot be restored: {error}") from error


def _compare_database(database: Path, manifest: Manifest) -> int:
    """The revision with which etcd has to start."""
    scan = DatabaseScan()
    with database.open("rb", buffering=0) as source:
        while block := source.read(_BLOCK):
            scan.feed(block)
    found = scan.finish()
    if (found.revision, found.keys) != (manifest.revision, manifest.keys):
        raise NotRestorable(
            f"the restored database has revision {found.revision} and {found.keys} keys, "
            f"its manifest names {manifest.revision} and {manifest.keys}"
        )
    return found.etcd_revision


def _hash_of(folder: Path, file: Path, manifest: Manifest, programs: Programs) -> int | None:
    """The HashKV of the snapshot; None if this etcdutl cannot compute it."""
    if not programs.hashes_files:
        return None
    command = [str(programs.etcdutl), "hashkv", str(file), "-w", "json"]
    output = run(command, folder=folder, log=folder / "hash.log", limit=time_limit(manifest.size))
    return int(json.loads(output.strip().splitlines()[-1])["hash"])


def _serve(folder: Path, manifest: Manifest, programs: Programs) -> tuple[int, int]:
    """Start etcd on the restored data; its revision and its HashKV."""
    certificate = make_certificate(folder)
    limit = time_limit(manifest.size)
    for attempt in range(1, _STARTS + 1):
        endpoint, peer = _free_addresses()
        command = _command(folder, manifest, programs, certificate, endpoint, peer)
        log = folder / f"etcd-{attempt}.log"
        channels = Channels(certificate.client)
        try:
            with started(command, folder=folder, log=log) as process:
                client = EtcdClient(channels, endpoint)
                if _await_start(process, client, limit):
                    # An idle etcd: what it answers now is what was restored.
                    return client.status().revision, client.hash_kv(deadline=limit).hash
        except OperatorError as error:
            raise NotRestorable(f"the restored etcd does not answer: {error}; {last_line(log)}") from error
        finally:
            channels.close()
        if "address already in use" not in log.read_text(errors="replace"):
            break
    raise NotRestorable(f"etcd {programs.version} does not start on the restored data: {last_line(log)}")


def _await_start(process: subprocess.Popen[bytes], client: EtcdClient, limit: float) -> bool:
    """Whether it serves reads with its quorum within `limit` seconds; false if the process ends."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if client.has_quorum(deadline=2.0):
            return True
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
            return False
    return False


def _command(
    folder: Path, manifest: Manifest, programs: Programs, certificate: Certificate, endpoint: str, peer: str
) -> list[str]:
    flags = {
        "name": NAME,
        "data-dir": str(folder / NAME),
        "listen-client-urls": f"https://{endpoint}",
        "advertise-client-urls": f"https://{endpoint}",
        "listen-peer-urls": f"https://{peer}",
        "initial-advertise-peer-urls": f"https://{LOOPBACK}:1",
        "initial-cluster": f"{NAME}=https://{LOOPBACK}:1",
        "quota-backend-bytes": str(max(8 << 30, 2 * manifest.size)),
        "log-level": "warn",
        "unsafe-no-fsync": "true",
    }
    for prefix in ("", "peer-"):
        flags[f"{prefix}client-cert-auth"] = "true"
        flags[f"{prefix}trusted-ca-file"] = str(certificate.file)
        flags[f"{prefix}cert-file"] = str(certificate.file)
        flags[f"{prefix}key-file"] = str(certificate.key)
    return [str(programs.etcd), *(f"--{flag}={value}" for flag, value in flags.items())]


def _free_addresses() -> tuple[str, str]:
    """Two addresses that nobody listens on now; another process may take one before etcd does."""
    with socket.socket() as first, socket.socket() as second:
        first.bind((LOOPBACK, 0))
        second.bind((LOOPBACK, 0))
        return tuple(f"{LOOPBACK}:{each.getsockname()[1]}" for each in (first, second))  # type: ignore[return-value]
