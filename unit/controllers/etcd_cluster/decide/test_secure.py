"""TLS: CAs are made and recorded before the first member, and so is whether users are required."""

from dataclasses import replace

import msgspec
import pytest

from etcd_operator.api.persisted import AuthRecord, TlsRecord
from etcd_operator.api.tls import (
    PLAIN,
    Auto,
    CertManager,
    ClientTls,
    IssuerRef,
    MemberTls,
    PeerMode,
    PeerTls,
    SecretKeys,
    SecretRef,
    Tls,
    UserSecret,
)
from etcd_operator.controllers.etcd_cluster.decide.actions import CreateMember, Remember, Stage
from etcd_operator.controllers.etcd_cluster.decide.certificates.acts import (
    CreateAuthorities,
    RequestCertificates,
)
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import SuppliedFacts
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster, PersistedState
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.state import TlsFacts, Unseen
from unit.controllers.etcd_cluster.decide.builders import (
    bootstrapped,
    claim,
    down,
    ephemeral,
    persistent,
    pod,
    with_record,
)
from unit.controllers.etcd_cluster.decide.certificates import certs
from unit.controllers.etcd_cluster.decide.initial_members import BOTH
from unit.controllers.etcd_cluster.decide.tls_states import (
    BOTH_SIDES,
    CLIENT,
    MADE,
    PEER,
    RECORD,
    new,
    secured,
)


@BOTH
def test_the_cas_are_made_before_anything_else(cluster: DesiredCluster) -> None:
    made = plan(new(cluster, facts=TlsFacts()))
    assert made.actions == (CreateAuthorities(),)
    assert made.requeue_after is not None


@BOTH
@pytest.mark.parametrize(
    ("tls", "record"),
    [
        (BOTH_SIDES, RECORD),
        (Tls(peer=PEER), TlsRecord(peer_ca="p")),
        (Tls(client=CLIENT), TlsRecord(client_ca="c", client_cert_auth=True)),
        (
            Tls(client=ClientTls(auto=Auto(), client_cert_auth=False, min_version="TLS1.3")),
            TlsRecord(client_ca="c", min_version="TLS1.3"),
        ),
    ],
)
def test_what_is_asked_for_is_recorded_before_the_bootstrap(
    cluster: DesiredCluster, tls: Tls, record: TlsRecord
) -> None:
    state = new(cluster, tls)
    made = plan(state)
    assert made.actions == (Remember(persisted=PersistedState(tls=record)),)
    begun = plan(with_record(state, tls=record))
    first = begun.actions[0]
    assert isinstance(first, Remember)
    assert first.persisted.tls == record
    assert first.persisted.bootstrap is not None
    assert isinstance(begun.actions[1], CreateMember)


OF_ISSUER = CertManager(issuer_ref=IssuerRef(name="ours"))
ISSUED = Tls(peer=PeerTls(cert_manager=OF_ISSUER), client=ClientTls(cert_manager=OF_ISSUER))
ASKED = TlsFacts(unissued=Unseen(reason="Creating", message="not yet"))
ISSUED_MADE = replace(MADE, issued=frozenset({"peer", "client"}))


@BOTH
def test_cert_manager_is_asked_and_waited_for_before_anything_is_made(cluster: DesiredCluster) -> None:
    made = plan(new(cluster, ISSUED, replace(ASKED, is_unrequested=True)))
    assert made.actions == (RequestCertificates(),)
    made = plan(new(cluster, ISSUED, ASKED))
    assert (made.actions, made.stage, made.message) == (
        (),
        Stage.WORKING,
        "waiting for cert-manager: not yet",
    )
    refused = TlsFacts(unissued=Unseen(reason="TLSInvalid", message="Certificate x is not ready"))
    made = plan(new(cluster, ISSUED, refused))
    assert (made.stage, made.reason, made.message) == (Stage.HELD, "TLSInvalid", "Certificate x is not ready")
    assert plan(new(cluster, ISSUED, TlsFacts())).actions == (CreateAuthorities(),)


@BOTH
def test_the_issuer_is_recorded_with_its_ca(cluster: DesiredCluster) -> None:
    record = TlsRecord(
        peer_ca="p",
        client_ca="c",
        client_cert_auth=True,
        peer_issuer=IssuerRef(name="ours"),
        client_issuer=IssuerRef(name="ours"),
    )
    state = new(cluster, ISSUED, ISSUED_MADE)
    assert plan(state).actions == (Remember(persisted=PersistedState(tls=record)),)
    assert isinstance(plan(with_record(state, tls=record)).actions[1], CreateMember)


@BOTH
@pytest.mark.parametrize(("tls", "facts"), [(ISSUED, MADE), (BOTH_SIDES, ISSUED_MADE)])
def test_a_source_that_is_changed_while_a_cluster_is_made_is_refused(
    cluster: DesiredCluster, tls: Tls, facts: TlsFacts
) -> None:
    made = plan(new(cluster, tls, facts))
    assert (made.stage, made.reason, made.actions) == (Stage.HELD, "TLSRefused", ())


OWN = Tls(peer=PeerTls(secret_ref=SecretRef(name="own")))


@BOTH
@pytest.mark.parametrize("keys", ["tls", "peer"])
def test_the_secret_of_a_user_is_recorded_with_its_keys_and_no_ca_is_made(
    cluster: DesiredCluster, keys: SecretKeys
) -> None:
    leaf = certs.certificate(key="l", issuer="ca", since=certs.NOW, life=certs.DAY, is_ca=False)
    facts = TlsFacts(supplied=(("peer", SuppliedFacts(keys=keys, leaf=leaf)),))
    state = new(cluster, OWN, facts)
    record = TlsRecord(peer_secret=UserSecret(name="own", keys=keys))
    assert plan(state).actions == (Remember(persisted=PersistedState(tls=record)),)
    begun = plan(with_record(state, tls=record))
    assert isinstance(begun.actions[1], CreateMember)


@BOTH
def test_the_other_side_has_a_ca_of_the_operator(cluster: DesiredCluster) -> None:
    both = Tls(peer=OWN.peer, client=CLIENT)
    assert plan(new(cluster, both, TlsFacts())).actions == (CreateAuthorities(),)
    record = TlsRecord(peer_secret=UserSecret(name="own"), client_ca="c", client_cert_auth=True)
    assert plan(new(cluster, both)).actions == (Remember(persisted=PersistedState(tls=record)),)


@BOTH
def test_members_that_run_are_left_alone_with_a_secret_of_a_user_too(cluster: DesiredCluster) -> None:
    name = cluster.member_name(0)
    state = replace(new(cluster, OWN, TlsFacts()), members=(Member(name=name, pod=pod(name)),))
    assert plan(state).reason == "TLSRefused"


@BOTH
def test_tls_that_is_removed_before_the_bootstrap_is_recorded_no_more(cluster: DesiredCluster) -> None:
    made = plan(with_record(new(cluster, None), tls=RECORD))
    assert made.actions == (Remember(persisted=PersistedState()),)


@BOTH
def test_members_that_were_not_created_with_these_cas_are_left_alone(cluster: DesiredCluster) -> None:
    name = cluster.member_name(0)
    state = replace(new(cluster, facts=TlsFacts()), members=(Member(name=name, pod=pod(name)),))
    made = plan(state)
    assert (made.reason, made.stage, made.actions) == ("TLSRefused", Stage.HELD, ())


@pytest.mark.parametrize("wants", [False, True])
def test_data_with_other_peer_urls_is_not_resumed(wants: bool) -> None:
    """Where the operator does not issue the certificates that all members need to find each other."""
    state = new(persistent(), OWN if wants else None)
    members = (Member(name="db-0", claim=claim("db-0", has_peer_tls=not wants)),)
    made = plan(replace(state, members=members))
    assert (made.reason, made.stage, made.actions) == ("TLSRefused", Stage.HELD, ())


@pytest.mark.parametrize(
    ("stored", "mode"),
    [
        ((False, False, False), "Dial"),
        ((True, False, False), "Dial"),
        ((True, False), "Dial"),
        ((True, True, False), "Require"),
        ((True, True, True), "Require"),
    ],
)
def test_members_listen_as_in_the_data_of_most(stored: tuple[bool, ...], mode: PeerMode) -> None:
    """All have certificates then, so that they find the others; the change is finished once they serve."""
    names = (f"db-{number}" for number in range(len(stored)))
    claims = (claim(name, has_peer_tls=each) for name, each in zip(names, stored, strict=True))
    state = replace(new(persistent()), members=tuple(Member(name=each.name, claim=each) for each in claims))
    record = msgspec.structs.replace(RECORD, peer_mode=mode)
    assert plan(state).actions == (Remember(persisted=PersistedState(tls=record)),)
    recorded = with_record(state, tls=record)
    assert recorded.desired.secured.peer_mode == mode
    assert plan(recorded).reason != "TLSRefused"


def test_data_with_the_same_peer_urls_is_resumed() -> None:
    members = (Member(name="db-0", claim=claim("db-0", has_peer_tls=True)),)
    made = plan(with_record(replace(new(persistent()), members=members), tls=RECORD))
    assert made.reason != "TLSRefused"


ON, OFF = AuthRecord(enabled=True), AuthRecord(enabled=False)


@BOTH
@pytest.mark.parametrize(
    ("wanted", "recorded", "record"),
    [
        (True, None, ON),
        (True, OFF, ON),
        (True, ON, None),
        (False, ON, OFF),
        (False, None, OFF),
        (False, OFF, None),
        (None, None, None),
        (None, ON, OFF),
        (None, OFF, None),
    ],
)
def test_whether_users_are_required_is_recorded_before_it_is_done(
    cluster: DesiredCluster, wanted: bool | None, recorded: AuthRecord | None, record: AuthRecord | None
) -> None:
    state = secured(replace(cluster, auth=wanted))
    made = plan(with_record(state, tls=RECORD, auth=recorded))
    if record is None:
        assert not any(isinstance(action, Remember) for action in made.actions)
        return
    (action,) = made.actions
    assert isinstance(action, Remember)
    assert action.persisted == replace(state.persisted, auth=record)
    begun = plan(new(replace(cluster, auth=wanted)))
    assert all(not isinstance(a, Remember) or a.persisted.auth is None for a in begun.actions)


@BOTH
def test_users_are_let_in_again_although_a_quorum_is_lost(cluster: DesiredCluster) -> None:
    """Where clients are refused, nothing may hold that up but what etcd needs itself."""
    state = with_record(secured(replace(cluster, auth=False)), tls=RECORD, auth=ON)
    for member in state.members[1:]:
        state = down(state, member.name, pod=None)
    (action,) = plan(state).actions
    assert isinstance(action, Remember)
    assert action.persisted.auth == OFF


@BOTH
def test_certificates_of_a_user_are_not_added_and_what_members_have_is_recorded(
    cluster: DesiredCluster,
) -> None:
    state = replace(bootstrapped(cluster), desired=replace(bootstrapped(cluster).desired, tls=OWN))
    made = plan(state)
    assert (made.reason, made.stage, made.actions) == ("InvalidSpec", Stage.HELD, ())
    assert "certificates of your own, or of cert-manager, cannot be added" in made.message
    state = replace(state, desired=replace(state.desired, tls=BOTH_SIDES))
    unseen = Unseen(reason="TLSInvalid", message="no record", is_asked=False)
    made = plan(replace(state, unseen=unseen, tls=replace(MADE, is_unrecorded=True)))
    assert made.actions == (Remember(persisted=replace(state.persisted, tls=RECORD)),)
    made = plan(replace(state, unseen=unseen))
    assert (made.reason, made.actions) == ("TLSInvalid", ())


@pytest.mark.parametrize("has_begun", [False, True])
def test_members_are_reached_as_they_were_created(has_begun: bool) -> None:
    """Whatever the spec says by now."""
    cluster = ephemeral(tls=Tls(peer=PEER), persisted=PersistedState(tls=RECORD, cluster_id="id" * has_begun))
    both = MemberTls(peer=True, client=True, client_cert_auth=True)
    assert cluster.secured == (both if has_begun else MemberTls(peer=True))
    assert replace(cluster, tls=None).secured == both
    assert ephemeral().secured == PLAIN
