"""The tool on a real etcd that requires certificates: it dials as root, and serves over TLS itself."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from e2e.support.keys import KeyClient
from etcd_operator.archive.keys import KeyRing
from etcd_operator.cli import main
from etcd_operator.clock import Clock
from etcd_operator.etcd.channel import Channels
from etcd_operator.etcd.credentials import read_folder
from etcd_operator.pki.authority import KeyPair, issue, new_ca
from etcd_operator.pki.names import names_of
from etcd_operator.pki.profiles import Leaf
from etcd_operator.pki.profiles import client as client_leaf
from etcd_operator.pki.profiles import server as server_leaf
from etcd_operator.pods import client
from etcd_operator.pods.client import NoReport
from etcd_operator.pods.http_client import Server, Trust
from etcd_operator.pods.reports import ToolReport
from etcd_operator.programs.backup_tool.seed import FromTool
from unit.archive.conftest import binaries
from unit.etcd.real import RealEtcdCluster
from unit.programs.backup_tool.support import at, newest, tool
from unit.waiting import eventually

__all__ = ["binaries"]

NAME = "c-backup-tool"


def ca_named(name: str) -> KeyPair:
    return new_ca(name, now=datetime.now(UTC), duration=timedelta(days=1))


class Secured:
    """An etcd whose clients need certificates of `ca`; the files of the tool are in `folder`."""

    def __init__(self, binaries: Path, root: Path) -> None:
        self.folder, served = root / "tls", root / "etcd"
        self.folder.mkdir()
        served.mkdir()
        self.ca = ca_named("clients")
        pair = {"cert-file": "server.crt", "key-file": "server.key", "trusted-ca-file": "ca.crt"}
        flags = tuple(f"--{flag}={served / file}" for flag, file in pair.items())
        self.etcd = RealEtcdCluster(binaries, root, tls=(*flags, "--client-cert-auth", "--bcrypt-cost=4"))
        self._write(served, "server", self._server("127.77.0.1"))
        self.give(client_leaf("root"))
        self._write(self.folder, "server", self._server())

    def start(self) -> str:
        """Where it serves."""
        self.etcd.bootstrap("m0")
        endpoint = self.etcd.endpoint("m0")
        self._write(self.folder.parent / "etcd", "server", self._server(endpoint.partition(":")[0]))
        return endpoint

    def give(self, leaf: Leaf, ca: KeyPair | None = None) -> None:
        """As the kubelet does when the Secret has changed."""
        self._write(self.folder, "tls", leaf, ca)

    def _server(self, *addresses: str) -> Leaf:
        return server_leaf(names_of((NAME,), namespace="ns", zone="cluster.local", extra_ips=addresses))

    def _write(self, folder: Path, file: str, leaf: Leaf, ca: KeyPair | None = None) -> None:
        pair = issue(ca or self.ca, leaf, now=datetime.now(UTC), duration=timedelta(hours=1))
        (folder / f"{file}.crt").write_bytes(pair.certificate)
        (folder / f"{file}.key").write_bytes(pair.key)
        (folder / "ca.crt").write_bytes(self.ca.certificate)

    def ctl(self, *words: str) -> None:
        files = {"cacert": "ca.crt", "cert": "tls.crt", "key": "tls.key"}
        flags = (f"--{flag}={self.folder / file}" for flag, file in files.items())
        self.etcd.ctl(*words, *flags, endpoint=self.etcd.endpoint("m0"))


@pytest.fixture
def made(binaries: Path, tmp_path: Path) -> Iterator[Secured]:
    secured = Secured(binaries, tmp_path)
    yield secured
    secured.etcd.close()


def test_a_cluster_that_requires_certificates_and_users_is_backed_up(made: Secured, tmp_path: Path) -> None:
    endpoint, root = made.start(), tmp_path / "backups"
    with closing(Channels(read_folder(made.folder))) as channels:
        keys = KeyClient(channels, endpoint)
        eventually(lambda: keys.has_quorum(deadline=1.0))
        keys.put(b"key", b"1")
        for words in (("add", "root", "--no-password"), ("grant-role", "root", "root")):
            made.ctl("user", *words)
        made.ctl("auth", "enable")
        with tool(root, endpoint, interval=0.2, tls=made.folder) as (worker, _):
            eventually(lambda: newest(worker) >= 2)
            # Nobody else may take a snapshot, and the files are read again before each.
            for leaf, ca, reason in (
                (client_leaf("client"), made.ca, "AccessRefused"),
                (client_leaf("root"), ca_named("another"), "NotReachable"),
            ):
                made.give(leaf, ca)
                written = keys.put(b"key", b"2")
                eventually(lambda reason=reason: failure(worker.report()) == reason)  # type: ignore[misc]
                made.give(client_leaf("root"))
                eventually(lambda written=written: newest(worker) == written)  # type: ignore[misc]


def failure(report: ToolReport) -> str:
    return report.failure.reason if report.failure is not None else ""


def test_what_it_serves_is_fetched_by_who_trusts_it(made: Secured, tmp_path: Path) -> None:
    endpoint = made.start()
    with tool(tmp_path / "backups", endpoint, interval=1.0, tls=made.folder) as (worker, server):
        eventually(lambda: worker.report().count == 1)
        trusted = replace(at(server.port), trust=Trust(ca=made.ca.certificate, name=NAME))
        report = client.ask(trusted).newest
        assert report is not None
        for other in (at(server.port), replace(trusted, trust=Trust(ca=made.ca.certificate, name="other"))):
            with pytest.raises(NoReport):
                client.ask(other)
        file = tmp_path / "fetched.db"
        fetched(trusted).fetch(file, etcd_version=report.etcd_version)
        (stored,) = (tmp_path / "backups").glob("**/*_etcd.backup")
        assert file.read_bytes() == stored.read_bytes()
        file.unlink()
        flags = {
            "tool": f"127.0.0.1:{server.port}",
            "token-file": tmp_path / "token",
            "cacert": made.folder / "ca.crt",
            "tls-server-name": NAME,
            "etcd-version": report.etcd_version,
            "file": file,
        }
        assert main(["seed", *(f"--{name}={value}" for name, value in flags.items()), "--quiet"]) == 0
        assert file.read_bytes() == stored.read_bytes()


def fetched(server: Server) -> FromTool:
    return FromTool(server=server, keys=KeyRing(), clock=Clock(), wait=lambda _: None)
