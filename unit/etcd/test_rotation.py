"""The steps of a rotation, taken with real certificates, files, handshakes and members.

After each step each member and a client accept each other: by a handshake with the leafs and the bundles that
they have at that moment, on each port.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from e2e.support.keys import KeyClient
from etcd_operator.controllers.etcd_cluster.decide.certificates.changes import Change, changed, makes_ca
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import (
    ClientLeaf,
    Files,
    ObservedCertificates,
    Phase,
    Record,
    Situation,
)
from etcd_operator.controllers.etcd_cluster.decide.certificates.steps import (
    Alter,
    Deliver,
    Publish,
    Restart,
    Step,
    next_step,
)
from etcd_operator.etcd.channel import Channels, TlsCredentials
from etcd_operator.etcd.handshake import Handshake, shake
from etcd_operator.pki import profiles
from etcd_operator.pki.authority import KeyPair, issue, new_ca, renewed_ca
from etcd_operator.pki.description import Description, describe, describe_bundle
from etcd_operator.pki.names import names_of
from unit.etcd.real import RealEtcdCluster, free_address
from unit.waiting import eventually

pytestmark = pytest.mark.exhaustive

NAMES = ("m0", "m1", "m2")
LEAF_LIFE, CA_LIFE = timedelta(days=90), timedelta(days=3650)
DEADLINE = 30.0


def flags(folder: Path) -> tuple[str, ...]:
    files = {
        "cert-file": "crt",
        "key-file": "key",
        "trusted-ca-file": "ca",
        "peer-cert-file": "crt",
        "peer-key-file": "key",
        "peer-client-cert-file": "dial.crt",
        "peer-client-key-file": "dial.key",
        "peer-trusted-ca-file": "ca",
    }
    return (
        *(f"--{flag}={folder / name}" for flag, name in files.items()),
        "--client-cert-auth",
        "--peer-client-cert-auth",
        f"--peer-cert-allowed-cn={profiles.PEER}",
        "--enable-grpc-gateway=false",
    )


@dataclass(slots=True, kw_only=True)
class Member:
    """A process with files of its own; `loaded` is the bundle that it was started with."""

    name: str
    folder: Path
    etcd: RealEtcdCluster
    peer_url: str
    dial: KeyPair
    loaded: bytes

    @property
    def ports(self) -> tuple[str, str]:
        return self.etcd.endpoint(self.name), self.peer_url.removeprefix("https://")

    @property
    def files(self) -> Files:
        leaf, bundle = (self.folder / "crt").read_bytes(), (self.folder / "ca").read_bytes()
        return Files(leaf=describe(leaf), bundle=describe_bundle(bundle))


class Cluster:
    """Three members of one CA for both of their ports, and a client that has what is published."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self._cas: dict[str, KeyPair] = {}
        trusted = (self._new_ca(), self._new_ca())
        self.record = Record(trusted=trusted, issuer=trusted[0].key_id, since=datetime.now(UTC))
        self.published, self.root = self.bundle, self._issue(profiles.client("root"))
        self.restarts = 0
        self.members = []
        for name in NAMES:
            (folder / name).mkdir()
            etcd = RealEtcdCluster(binaries, folder / name, tls=flags(folder / name))
            made = Member(
                name=name,
                folder=folder / name,
                etcd=etcd,
                peer_url=f"https://{free_address()}",
                dial=self.root,
                loaded=self.bundle,
            )
            self._deliver(made)
            self.members.append(made)

    def start(self) -> None:
        urls = {member.name: member.peer_url for member in self.members}
        for member in self.members:
            member.etcd.start(member.name, member.peer_url, urls, state="new")
        for member in self.members:
            eventually(lambda member=member: self.serves(member))  # type: ignore[misc]

    def close(self) -> None:
        for member in self.members:
            member.etcd.close()

    @property
    def bundle(self) -> bytes:
        return b"".join(self._cas[ca.key_id].certificate for ca in self.record.trusted)

    def _new_ca(self) -> Description:
        pair = new_ca("a CA", now=datetime.now(UTC), duration=CA_LIFE)
        return self._kept(pair)

    def _kept(self, pair: KeyPair) -> Description:
        found = describe(pair.certificate)
        self._cas[found.key_id] = pair
        return found

    def _issue(self, leaf: profiles.Leaf) -> KeyPair:
        return issue(self._cas[self.record.issuer], leaf, now=datetime.now(UTC), duration=LEAF_LIFE)

    def _deliver(self, member: Member) -> None:
        host = member.peer_url.removeprefix("https://").partition(":")[0]  # by which the others dial it
        names = names_of([member.name], namespace="ns", zone="cluster.local", extra_ips=[host])
        listening, member.dial = self._issue(profiles.peer_server(names)), self._issue(profiles.PEER_DIALING)
        contents = {
            "crt": listening.certificate,
            "key": listening.key,
            "dial.crt": member.dial.certificate,
            "dial.key": member.dial.key,
            "ca": self.bundle,
        }
        for name, content in contents.items():
            (member.folder / name).write_bytes(content)

    # Who accepts whom

    def shake(self, port: str, member: Member, client: KeyPair, ca: bytes) -> Handshake:
        credentials = TlsCredentials(
            ca=ca, certificate=client.certificate, key=client.key, server_name=member.name
        )
        return shake(port, credentials, deadline=DEADLINE)

    def refusals(self) -> list[str]:
        found = []
        for member in self.members:
            client_port, peer_port = member.ports
            shaken = {
                other.name: self.shake(peer_port, member, other.dial, other.loaded)
                for other in self.members
                if other is not member
            }
            shaken["root"] = self.shake(client_port, member, self.root, self.published)
            found += [f"{name}: {each}" for name, each in shaken.items() if not each.is_accepted]
        return found

    def serves(self, member: Member) -> bool:
        credentials = TlsCredentials(
            ca=self.published,
            certificate=self.root.certificate,
            key=self.root.key,
            server_name=member.name,
        )
        channels = Channels(credentials)
        try:
            return KeyClient(channels, member.ports[0], deadline=2.0).has_quorum(deadline=2.0)
        finally:
            channels.close()

    # What the operator does

    def step(self, request: str) -> Step | None:
        members = []
        for member in self.members:
            leaf = self.shake(member.ports[1], member, member.dial, member.loaded).leaf
            loaded = describe_bundle(member.loaded)
            presented = leaf.serial if leaf is not None else ""
            members.append(
                ObservedCertificates(
                    name=member.name,
                    files=member.files,
                    is_running=True,
                    presented=presented,
                    loaded=loaded,
                )
            )
        return next_step(
            Situation(
                record=self.record,
                members=tuple(members),
                now=datetime.now(UTC),
                clients=(ClientLeaf(name="root", leaf=describe(self.root.certificate)),),
                published=describe_bundle(self.published),
                request=request,
            )
        )

    def act(self, step: Step) -> None:
        by_name = {member.name: member for member in self.members}
        match step.action:
            case Alter(change):
                self._alter(change)
            case Publish():
                self.published = self.bundle
            case Deliver(members=members, clients=clients):
                for name in members:
                    self._deliver(by_name[name])
                if clients:
                    self.root = self._issue(profiles.client("root"))
            case Restart(members=names):
                self._restart(by_name[names[0]])
            case None:
                raise AssertionError(step.message)

    def _alter(self, change: Change) -> None:
        made: tuple[Description, ...] = ()
        if change is Change.RENEW:
            made = tuple(self._renewed(ca) for ca in self.record.trusted)
        elif makes_ca(self.record, change):
            made = (self._new_ca(),)
        self.record = changed(self.record, change, now=datetime.now(UTC), request="1", made=made)

    def _renewed(self, ca: Description) -> Description:
        pair = renewed_ca(self._cas[ca.key_id], now=datetime.now(UTC), duration=CA_LIFE)
        return self._kept(pair)

    def _restart(self, member: Member) -> None:
        self.restarts += 1
        member.etcd.kill(member.name)
        member.loaded = (member.folder / "ca").read_bytes()
        member.etcd.restart(member.name)
        eventually(lambda: self.serves(member))

    def settle(self, request: str) -> None:
        """All steps, each followed by handshakes of all with all."""
        while (step := self.step(request)) is not None:
            self.act(step)
            assert self.refusals() == [], step.message


@pytest.fixture
def cluster(binaries: Path, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(binaries, tmp_path)
    try:
        made.start()
        yield made
    finally:
        made.close()


def test_a_ca_is_rotated_and_renewed_while_all_accept_each_other(cluster: Cluster) -> None:
    assert cluster.refusals() == []
    former = cluster.root
    cluster.settle("1")
    assert cluster.restarts == 3
    assert cluster.record.phase is Phase.STABLE
    member = cluster.members[0]
    refused = cluster.shake(member.ports[0], member, former, cluster.published)
    assert refused.refusal == "unknown ca"
    kept = cluster.root
    cluster.act(Step(action=Alter(Change.RENEW), message="renewed"))
    cluster.settle("1")
    assert cluster.restarts == 6
    assert cluster.root is kept
    eventually(lambda: all(map(cluster.serves, cluster.members)))
