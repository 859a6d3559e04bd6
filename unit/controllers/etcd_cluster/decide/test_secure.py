"""TLS: CAs are made and recorded before the first member; what is missing or due later is written again."""

from dataclasses import replace

import pytest

from etcd_operator.api.cluster_spec import PLAIN, Auto, ClientTls, MemberTls, PeerTls, Tls
from etcd_operator.api.persisted import AuthRecord, TlsRecord
from etcd_operator.controllers.etcd_cluster.decide.actions import (
    CreateAuthorities,
    CreateMember,
    KeepCertificates,
    PublishAuthority,
    Remember,
    Stage,
)
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster, PersistedState
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState, TlsFacts
from unit.controllers.etcd_cluster.decide.builders import (
    bootstrapped,
    claim,
    down,
    ephemeral,
    persistent,
    pod,
    with_record,
)
from unit.controllers.etcd_cluster.decide.initial_members import BOTH

PEER, CLIENT = PeerTls(auto=Auto()), ClientTls(auto=Auto())
BOTH_SIDES = Tls(peer=PEER, client=CLIENT)
MADE = TlsFacts(peer_ca="p", client_ca="c")
RECORD = TlsRecord(peer_ca="p", client_ca="c", client_cert_auth=True)


def new(cluster: DesiredCluster, tls: Tls | None = BOTH_SIDES, facts: TlsFacts = MADE) -> ClusterState:
    """A cluster of which nothing exists but, perhaps, its CAs."""
    return ClusterState(desired=replace(cluster, tls=tls), tls=facts, age=1.0)


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
    state = new(persistent(), BOTH_SIDES if wants else None)
    members = (Member(name="db-0", claim=claim("db-0", has_peer_tls=not wants)),)
    made = plan(replace(state, members=members))
    assert (made.reason, made.stage, made.actions) == ("TLSRefused", Stage.HELD, ())


def test_data_with_the_same_peer_urls_is_resumed() -> None:
    members = (Member(name="db-0", claim=claim("db-0", has_peer_tls=True)),)
    made = plan(with_record(replace(new(persistent()), members=members), tls=RECORD))
    assert made.reason != "TLSRefused"


def secured(cluster: DesiredCluster, facts: TlsFacts) -> ClusterState:
    """A cluster that serves."""
    state = bootstrapped(replace(cluster, tls=BOTH_SIDES))
    return with_record(replace(state, tls=facts), tls=RECORD)


@BOTH
def test_what_is_missing_or_due_is_written_without_a_word(cluster: DesiredCluster) -> None:
    name = cluster.member_name(0)
    made = plan(secured(cluster, replace(MADE, outdated=(name, "db-client"), is_published=False)))
    assert made.actions == (KeepCertificates(name=name),)
    assert made.is_quiet
    made = plan(secured(cluster, replace(MADE, outdated=("db-client",), is_published=False)))
    assert made.actions == (KeepCertificates(name="db-client"), PublishAuthority())
    assert made.is_quiet
    made = plan(secured(cluster, replace(MADE, is_published=False)))
    assert made.actions == (PublishAuthority(),)


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
    state = secured(replace(cluster, auth=wanted), MADE)
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
    state = with_record(secured(replace(cluster, auth=False), MADE), tls=RECORD, auth=ON)
    for member in state.members[1:]:
        state = down(state, member.name, pod=None)
    (action,) = plan(state).actions
    assert isinstance(action, Remember)
    assert action.persisted.auth == OFF


def test_what_clients_need_comes_after_a_repair() -> None:
    """Somebody else's object of that name may refuse it for ever."""
    state = secured(ephemeral(), replace(MADE, is_published=False))
    made = plan(down(state, state.members[0].name, pod=None))
    assert made.actions
    assert PublishAuthority() not in made.actions


@BOTH
def test_nothing_is_written_while_all_is_current(cluster: DesiredCluster) -> None:
    assert plan(secured(cluster, MADE)).actions == plan(bootstrapped(cluster)).actions


@pytest.mark.parametrize("has_begun", [False, True])
def test_members_are_reached_as_they_were_created(has_begun: bool) -> None:
    """Whatever the spec says by now."""
    cluster = ephemeral(tls=Tls(peer=PEER), persisted=PersistedState(tls=RECORD, cluster_id="id" * has_begun))
    both = MemberTls(peer=True, client=True, client_cert_auth=True)
    assert cluster.secured == (both if has_begun else MemberTls(peer=True))
    assert replace(cluster, tls=None).secured == both
    assert ephemeral().secured == PLAIN
