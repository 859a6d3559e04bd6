"""When handshakes with members are made, and which of them count."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import pytest

from etcd_operator.api.shared_keys import LOADED_ANNOTATION
from etcd_operator.api.tls import Auto, ClientTls, PeerMode, PeerTls, Tls
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import (
    SIDES,
    Files,
    ObservedCertificates,
    Side,
    Situation,
)
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.serving import WITHOUT_TLS
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState, TlsFacts
from etcd_operator.controllers.etcd_cluster.manifests.authorities import new_authorities
from etcd_operator.controllers.etcd_cluster.manifests.loaded import loaded_of, loaded_text
from etcd_operator.controllers.etcd_cluster.manifests.tls import Held
from etcd_operator.controllers.etcd_cluster.tls import handshakes
from etcd_operator.controllers.etcd_cluster.tls.authorities import AuthorityStore
from etcd_operator.controllers.etcd_cluster.tls.handshakes import (
    NOTHING,
    RARELY,
    SILENT,
    SOON,
    Handshakes,
    uses_peers,
)
from etcd_operator.controllers.etcd_cluster.tls.seen import Seen
from etcd_operator.controllers.etcd_cluster.tls.writer import CertificateWriter
from etcd_operator.controllers.shared.inquiries import Inquiries, PodServer
from etcd_operator.errors import Unavailable
from etcd_operator.etcd.channel import TlsCredentials
from etcd_operator.etcd.handshake import Handshake
from unit.controllers.etcd_cluster.decide.builders import answer, ephemeral, pod
from unit.fakes.clock import FakeClock

PEER, CLIENT = PeerTls(auto=Auto()), ClientTls(auto=Auto())
CLUSTER = ephemeral(tls=Tls(peer=PEER, client=CLIENT))
DIAL = TlsCredentials(ca=b"ca", by_name=True)
MEMBER = Member(name="db-0000", pod=pod("db-0000"), answer=answer("db-0000"))
REFUSED = Handshake(leaf=None, refusal="unknown ca")


@dataclass
class Dialed:
    """Handshakes, made at once by nobody but this test."""

    clock: FakeClock = field(default_factory=FakeClock)
    asked: list[tuple[str, TlsCredentials]] = field(default_factory=list)
    reply: Handshake | None = REFUSED

    def shake(self, endpoint: str, credentials: TlsCredentials) -> Handshake:
        self.asked.append((endpoint, credentials))
        if self.reply is None:
            raise Unavailable("nobody is there")
        return self.reply

    def inquiries(self, ask: Callable[[PodServer], Handshake]) -> Inquiries[Handshake]:
        return Inquiries(
            "handshakes",
            on_answer=lambda _: None,
            clock=self.clock,
            epoch=lambda: 0,
            ask=ask,
            submit=lambda work: work(),
        )


@pytest.fixture
def dialed(monkeypatch: pytest.MonkeyPatch) -> Dialed:
    made = Dialed()
    monkeypatch.setattr(handshakes, "shake", made.shake)
    return made


@pytest.mark.parametrize(
    ("is_known", "answers", "every"), [(True, True, RARELY), (False, True, SOON), (False, False, SILENT)]
)
def test_how_often_a_member_is_asked(dialed: Dialed, is_known: bool, answers: bool, every: float) -> None:
    made = Handshakes(dialed.inquiries)
    member = MEMBER if answers else Member(name=MEMBER.name, pod=MEMBER.pod)
    for seconds in (0.0, every - 1.0, 1.0):
        dialed.clock.advance(seconds)
        made.ask(CLUSTER, member, "db-0000.ns", DIAL, is_known=is_known)
    assert len(dialed.asked) == 2
    assert dialed.asked[0] == ("10.0.0.1:2379", TlsCredentials(ca=b"ca", server_name="db-0000.ns"))
    assert made.last(CLUSTER, member) == REFUSED


def test_the_port_for_members_is_asked_where_clients_use_no_tls(dialed: Dialed) -> None:
    made = Handshakes(dialed.inquiries)
    made.ask(ephemeral(tls=Tls(peer=PEER)), MEMBER, "db-0000", DIAL, is_known=False)
    assert [at for at, _ in dialed.asked] == ["10.0.0.1:2380"]


def test_what_another_pod_has_shown_does_not_count(dialed: Dialed) -> None:
    made = Handshakes(dialed.inquiries)
    made.ask(CLUSTER, MEMBER, "db-0000", DIAL, is_known=False)
    other = Member(name=MEMBER.name, pod=pod("db-0000", uid="other"))
    assert made.last(CLUSTER, other) == NOTHING


@pytest.mark.parametrize(
    "member", [Member(name="db-0000"), Member(name="db-0000", pod=pod("db-0000", ip=""))]
)
def test_a_member_that_cannot_be_reached_is_not_asked(dialed: Dialed, member: Member) -> None:
    made = Handshakes(dialed.inquiries)
    made.ask(CLUSTER, member, "db-0000", DIAL, is_known=False)
    assert not dialed.asked
    assert made.last(CLUSTER, member) == NOTHING


def test_no_answer_shows_nothing(dialed: Dialed) -> None:
    dialed.reply = None
    made = Handshakes(dialed.inquiries)
    made.ask(CLUSTER, MEMBER, "db-0000", DIAL, is_known=False)
    assert made.last(CLUSTER, MEMBER) == NOTHING


def test_a_pod_is_said_to_load_only_what_it_has_shown() -> None:
    """Its volume may still have what the Secret had before."""
    store = Mock(spec=AuthorityStore)
    store.supplied = Mock(of=lambda *_: {})
    store.recorded.return_value = new_authorities(CLUSTER, datetime(2026, 1, 1, tzinfo=UTC), "z")
    made = CertificateWriter(
        authorities=store, dialect=Mock(), clock=FakeClock(), holdings=Mock(), issuers=Mock()
    )
    shown = TlsFacts(proven=frozenset({"db-0000"}))
    assert not made.loaded(ClusterState(desired=CLUSTER, tls=shown), "db-0001")
    annotation = made.loaded(ClusterState(desired=CLUSTER, tls=shown), "db-0000")[LOADED_ANNOTATION]
    client = store.recorded.return_value.client.record.trusted
    loaded = loaded_of(annotation, "client")
    assert loaded is not None
    assert [(ca.key_id, ca.fingerprint) for ca in loaded] == [(ca.key_id, ca.fingerprint) for ca in client]
    for ca, wanted in zip(loaded, client, strict=True):
        for moment in (wanted.not_before, wanted.not_after):
            assert ca.is_valid(moment)
        assert not ca.is_valid(wanted.not_after + timedelta(seconds=1))


def test_a_pod_without_tls_loads_what_is_on_record_and_one_that_is_to_have_none_loads_nothing() -> None:
    store = Mock(spec=AuthorityStore)
    store.recorded.return_value = new_authorities(CLUSTER, datetime(2026, 1, 1, tzinfo=UTC), "z")
    store.supplied = Mock(of=lambda *_: {})
    made = CertificateWriter(
        authorities=store, dialect=Mock(), clock=FakeClock(), holdings=Mock(), issuers=Mock()
    )
    assert MEMBER.pod is not None
    peers = loaded_text({"peer": made.authorities.recorded(CLUSTER).peer.record.trusted})
    for tls, former, sides in (
        (Tls(client=CLIENT), "", ["client"]),
        (Tls(client=CLIENT, peer=PEER), "", ["client"]),  # what it has for peers, it has not shown
        (Tls(client=CLIENT, peer=PEER), peers, ["client", "peer"]),
        (None, "", []),
    ):
        plain = replace(MEMBER, pod=replace(MEMBER.pod, serving=WITHOUT_TLS, loaded=former))
        state = ClusterState(desired=ephemeral(tls=tls), members=(plain,))
        text = made.loaded(state, MEMBER.name).get(LOADED_ANNOTATION, "")
        assert sorted(side for side in SIDES if loaded_of(text, side)) == sides


@pytest.mark.parametrize(
    ("peers", "former", "hours", "is_known"),
    [
        ("Disabled", False, 0, True),
        ("Dial", False, 0, False),
        ("Dial", True, 0, True),
        ("Dial", False, 1, True),
        ("Require", True, 1, False),
    ],
)
def test_a_pod_is_said_to_load_a_bundle_that_was_just_written_only_if_it_had_it(
    peers: PeerMode, former: bool, hours: int, is_known: bool
) -> None:
    """The CA may have been renewed while the member listens without TLS, and its volume may be late."""
    begun = datetime(2026, 1, 1, tzinfo=UTC)
    store = Mock(spec=AuthorityStore)
    store.recorded.return_value = made = new_authorities(CLUSTER, begun, "z")
    store.supplied = Mock(of=lambda *_: {})
    writer = CertificateWriter(
        authorities=store, dialect=Mock(), clock=FakeClock(), holdings=Mock(), issuers=Mock()
    )
    trusted = made.peer.record.trusted
    files = Files(leaf=trusted[0], bundle=trusted)
    seen = ObservedCertificates(
        name=MEMBER.name, files=files, is_running=True, loaded=trusted if former else None
    )
    found = Situation(record=made.peer.record, members=(seen,), now=begun + timedelta(hours=hours))
    assert MEMBER.pod is not None
    member = replace(MEMBER, pod=replace(MEMBER.pod, peers=peers))
    state = ClusterState(
        desired=ephemeral(tls=Tls(peer=PEER)), members=(member,), tls=TlsFacts(sides=(("peer", found),))
    )
    text = writer.loaded(state, MEMBER.name).get(LOADED_ANNOTATION, "")
    assert (loaded_of(text, "peer") is not None) is is_known
    for members in ((), (replace(seen, files=None),)):
        unseen = replace(state, tls=TlsFacts(sides=(("peer", replace(found, members=members)),)))
        assert bool(writer.loaded(unseen, MEMBER.name)) is (peers == "Disabled")


@pytest.mark.parametrize(
    ("peers", "asked", "is_proven", "is_running", "is_followed"),
    [
        ("Disabled", None, False, False, False),
        ("Dial", None, False, True, True),
        ("Dial", "client", False, True, False),
        ("Dial", "client", True, True, True),
        ("Require", "peer", False, True, False),
    ],
)
def test_a_member_that_only_dials_with_certificates_counts_as_running(
    peers: PeerMode, asked: Side | None, is_proven: bool, is_running: bool, is_followed: bool
) -> None:
    """It trusts CAs, which may expire, and presents no certificate that could be asked for."""
    assert MEMBER.pod is not None
    member = replace(MEMBER, pod=replace(MEMBER.pod, peers=peers))
    made = new_authorities(CLUSTER, datetime(2026, 1, 1, tzinfo=UTC), "z")
    trusted = made.peer.record.trusted
    held = Held(files=Files(leaf=trusted[0], bundle=trusted))
    seen = Seen(member, {"peer": held}, asked, uses_peers=uses_peers(CLUSTER, member), is_proven=is_proven)
    found = seen.of("peer")
    assert (found.is_running, found.has_loaded_files) == (is_running, is_followed)


@pytest.mark.parametrize("text", ["", "{}", "x", '{"client": [{}]}', '{"client": 1}'])
def test_an_annotation_that_says_nothing_is_not_believed(text: str) -> None:
    assert loaded_of(text, "client") is None
