"""TLS for clients is added to, and removed from, clusters that serve."""

from dataclasses import replace

import msgspec
import pytest

from etcd_operator.api.persisted import AuthRecord, TlsRecord, Upgrade
from etcd_operator.api.tls import Auto, ClientMode, ClientTls, PeerTls, Tls
from etcd_operator.controllers.etcd_cluster.decide.actions import (
    AddLearner,
    ConfirmNoAuthentication,
    Remember,
    ReplaceMember,
)
from etcd_operator.controllers.etcd_cluster.decide.certificates.acts import (
    CreateAuthorities,
    DropCertificates,
)
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster, PersistedState
from etcd_operator.controllers.etcd_cluster.decide.facts.authorities import rotating
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.serving import Serving
from etcd_operator.controllers.etcd_cluster.decide.state import NO_TLS, ClusterState, Unseen
from unit.controllers.etcd_cluster.decide.builders import (
    VERSION,
    changed,
    ephemeral,
    persistent,
    with_record,
)
from unit.controllers.etcd_cluster.decide.initial_members import BOTH
from unit.controllers.etcd_cluster.decide.serving_states import (
    ADDING,
    CA,
    PLAIN,
    PREFER,
    PREFERRED,
    RECORD,
    REMOVING,
    REQUIRED,
    SUITES,
    switched,
)
from unit.controllers.etcd_cluster.decide.tls_states import at_rest


def recorded(state: ClusterState) -> TlsRecord | None:
    """What the plan records; fails if it does anything else."""
    made = plan(state)
    assert made.reason == "TLSRotating"
    (action,) = (each for each in made.actions if isinstance(each, Remember))
    return action.persisted.tls


@BOTH
@pytest.mark.parametrize(
    ("mode", "record", "members", "wanted"),
    [
        ("Require", None, (PLAIN,) * 3, ADDING),
        ("Require", ADDING, (PREFERRED,) * 3, RECORD),
        ("Prefer", ADDING, (PREFERRED,) * 3, PREFER),
        ("Require", PREFER, (PREFERRED,) * 3, RECORD),
        ("Disabled", ADDING, (PREFERRED, PLAIN, PLAIN), REMOVING),
        ("Prefer", REMOVING, (PREFERRED, PLAIN, PLAIN), ADDING),
        ("Disabled", RECORD, (REQUIRED,) * 3, PREFER),
        ("Disabled", PREFER, (PREFERRED,) * 3, REMOVING),
        ("Disabled", REMOVING, (PLAIN,) * 3, None),
    ],
)
def test_between_tls_and_none_all_members_serve_both(
    cluster: DesiredCluster,
    mode: ClientMode,
    record: TlsRecord | None,
    members: tuple[Serving, ...],
    wanted: TlsRecord | None,
) -> None:
    assert recorded(switched(cluster, mode, record, *members)) == wanted


@BOTH
@pytest.mark.parametrize(
    ("record", "members", "is_rotating"),
    [
        (None, (PLAIN,) * 3, False),
        (ADDING, (PLAIN,) * 3, True),
        (ADDING, (PREFERRED,) * 3, True),
        (PREFER, (PREFERRED,) * 3, False),
        (PREFER, (PREFERRED, PREFERRED, REQUIRED), True),
        (REMOVING, (PLAIN,) * 3, True),
    ],
)
def test_the_condition_is_true_from_the_record_on_until_all_members_serve_so(
    cluster: DesiredCluster, record: TlsRecord | None, members: tuple[Serving, ...], is_rotating: bool
) -> None:
    found, _, _ = rotating(switched(cluster, "Prefer", record, *members))
    assert found == is_rotating


@BOTH
@pytest.mark.parametrize(
    ("mode", "record", "members"),
    [
        ("Require", ADDING, (PREFERRED, PREFERRED, PLAIN)),
        ("Disabled", PREFER, (PREFERRED, PREFERRED, REQUIRED)),
        ("Disabled", REMOVING, (PLAIN, PLAIN, PREFERRED)),
    ],
)
def test_the_last_member_is_restarted_before_the_next_step(
    cluster: DesiredCluster, mode: ClientMode, record: TlsRecord, members: tuple[Serving, ...]
) -> None:
    state = replace(switched(cluster, mode, record, *members), budget=3)
    assert plan(state).actions[1:] == (ReplaceMember(name=cluster.member_name(2), version=VERSION),)


@BOTH
def test_what_is_done_beside_the_record(cluster: DesiredCluster) -> None:
    made = plan(switched(cluster, "Prefer", None, *(PLAIN,) * 3, tls=NO_TLS))
    assert made.actions == (CreateAuthorities(),)
    made = plan(switched(cluster, "Disabled", PREFER, *(PREFERRED,) * 3))
    assert made.actions[0] == ConfirmNoAuthentication()
    made = plan(switched(cluster, "Disabled", REMOVING, *(PLAIN,) * 3))
    # A pod that is restarted in its place mounts its Secret again.
    dropped = () if cluster.kind.restarts_in_place else cluster.initial_member_names
    assert made.actions[0] == DropCertificates(members=dropped)
    with_peer = msgspec.structs.replace(REMOVING, peer_ca="p")
    state = switched(cluster, "Disabled", with_peer, *(PLAIN,) * 3)
    made = plan(replace(state, desired=replace(state.desired, tls=Tls(peer=PeerTls(auto=Auto())))))
    assert made.actions[0] == DropCertificates(members=())
    (remembered,) = made.actions[1:]
    assert isinstance(remembered, Remember)
    assert remembered.persisted.tls == TlsRecord(peer_ca="p")


@BOTH
@pytest.mark.parametrize(
    ("mode", "record", "served"), [("Prefer", None, PLAIN), ("Disabled", PREFER, PREFERRED)]
)
def test_no_step_that_may_fail_keeps_a_lost_member_from_being_replaced(
    cluster: DesiredCluster, mode: ClientMode, record: TlsRecord | None, served: Serving
) -> None:
    state = switched(cluster, mode, record, *(served,) * 3, tls=NO_TLS)
    made = plan(replace(state, desired=replace(state.desired, size=4), budget=3))
    assert any(isinstance(action, AddLearner) for action in made.actions)


@BOTH
@pytest.mark.parametrize(
    ("served", "wanted"),
    [((PREFERRED, PLAIN, PLAIN), ADDING), ((PREFERRED,) * 3, PREFER), ((REQUIRED,) * 3, RECORD)],
)
def test_a_record_that_was_lost_is_written_as_members_serve(
    cluster: DesiredCluster, served: tuple[Serving, ...], wanted: TlsRecord
) -> None:
    state = switched(cluster, "Require", None, *served, tls=replace(CA, is_unrecorded=True))
    unseen = Unseen(reason="TLSInvalid", message="no record", is_asked=False)
    (action,) = plan(replace(state, unseen=unseen)).actions
    assert isinstance(action, Remember)
    assert action.persisted.tls == wanted


@BOTH
def test_tls_is_not_added_before_it_can_be(cluster: DesiredCluster) -> None:
    unkept = replace(NO_TLS, unkept=Unseen(reason="TLSUnreadable", message="no KMS"))
    made = plan(switched(cluster, "Prefer", None, *(PLAIN,) * 3, tls=unkept))
    assert (made.actions, made.reason) == ((), "TLSUnreadable")
    state = switched(cluster, "Prefer", None, *(PLAIN,) * 3)
    name = cluster.member_name(0)
    answer = state.by_name[name].answer
    assert answer is not None
    old = changed(state, name, answer=replace(answer, version="3.4.37"))
    assert not any(isinstance(each, Remember) and each.persisted.tls for each in plan(old).actions)


@pytest.mark.parametrize(
    ("mode", "record", "served", "told"),
    [
        ("Prefer", None, PLAIN, "be given TLS for clients"),
        ("Disabled", RECORD, REQUIRED, "serve clients without TLS"),
        ("Disabled", PREFER, PREFERRED, "serve clients without TLS"),
        ("Prefer", RECORD, REQUIRED, "serve clients in another way"),
    ],
)
def test_a_pod_of_an_earlier_build_in_which_clients_cannot_be_served_otherwise_is_named(
    mode: ClientMode, record: TlsRecord | None, served: Serving, told: str
) -> None:
    """Nothing is begun. A persistent member gets another pod."""
    pods = (served, None, served)
    made = plan(switched(ephemeral(), mode, record, *pods))
    assert (made.reason, made.actions) == ("TLSRefused", ())
    assert f"the pods {ephemeral().member_name(1)} were created by an earlier version" in made.message
    assert f"cannot {told}: delete one after another" in made.message
    as_now: ClientMode = record.mode if record is not None else "Disabled"
    assert plan(switched(ephemeral(), as_now, record, *pods)).reason != "TLSRefused"
    assert plan(switched(persistent(), mode, record, *pods)).reason != "TLSRefused"


def test_only_the_mode_is_changed_in_a_pod_of_the_first_builds_with_tls() -> None:
    """It would advertise TLS for ever, and ask clients for certificates."""
    name = ephemeral().member_name(1)

    def with_flag(mode: ClientMode, *, cert_auth: bool = True) -> ClusterState:
        state = switched(ephemeral(), mode, RECORD, *(REQUIRED,) * 3, cert_auth=cert_auth)
        found = state.by_name[name].pod
        assert found is not None
        return changed(
            state,
            name,
            pod=replace(found, serving=replace(REQUIRED, client_cert_auth=None, cipher_suites=None)),
        )

    for state in with_flag("Disabled"), with_flag("Prefer", cert_auth=False):
        made = plan(state)
        assert (made.reason, made.actions) == ("TLSRefused", ())
        assert f"the pods {name} were" in made.message
    assert recorded(with_flag("Prefer")) == PREFER


def test_cipher_suites_are_not_chosen_in_a_pod_of_an_earlier_build() -> None:
    name = ephemeral().member_name(1)
    first_build = replace(REQUIRED, client_cert_auth=None)
    for record, served, found in (
        (RECORD, REQUIRED, REQUIRED),
        (RECORD, REQUIRED, first_build),
        (None, PLAIN, PLAIN),
    ):
        earlier = replace(found, cipher_suites=None)
        state = switched(ephemeral(), "Prefer", record, served, earlier, served)
        wanted = Tls(client=ClientTls(auto=Auto(), mode="Prefer", cipher_suites=SUITES))
        made = plan(replace(state, desired=replace(state.desired, tls=wanted)))
        assert (made.reason, made.actions) == ("TLSRefused", ())
        assert f"the pods {name} were" in made.message
        assert recorded(state) == (PREFER if record is not None else ADDING)


@BOTH
def test_users_are_required_once_all_members_know_the_operator_by_its_certificate(
    cluster: DesiredCluster,
) -> None:
    for record, members, is_recorded in (
        (ADDING, (PLAIN,) * 3, False),
        (PREFER, (PREFERRED,) * 3, False),
        (RECORD, (REQUIRED, REQUIRED, replace(REQUIRED, client_cert_auth=False)), False),
        (RECORD, (REQUIRED,) * 3, True),
    ):
        state = switched(cluster, "Require", record, *members)
        made = plan(replace(state, desired=replace(state.desired, auth=True)))
        enabled = [each.persisted.auth for each in made.actions if isinstance(each, Remember)]
        assert (AuthRecord(enabled=True) in enabled) is is_recorded


@BOTH
def test_a_member_that_has_not_shown_what_it_loaded_is_restarted_once_more(cluster: DesiredCluster) -> None:
    """The change goes on after that: it waits for all restarts."""
    found = at_rest(cluster)
    *others, last = found.members
    unknown = replace(found, members=(*others, replace(last, loaded=None)))
    state = switched(cluster, "Prefer", ADDING, *(PREFERRED,) * 3)
    begun = Upgrade(origin=VERSION, target=VERSION, member=cluster.member_name(2), restart=True)
    state = replace(with_record(state, upgrade=begun), budget=3)
    made = plan(replace(state, tls=replace(CA, sides=(("client", unknown),))))
    assert made.actions[-1] == ReplaceMember(name=cluster.member_name(2), version=VERSION)
    made = plan(replace(state, tls=replace(CA, sides=(("client", found),))))
    assert made.actions == (Remember(persisted=with_record(state, upgrade=None).persisted),)


def test_which_clusters_have_certificates_for_clients() -> None:
    client, none = Tls(client=ClientTls(auto=Auto())), Tls(peer=PeerTls(auto=Auto()))
    for tls, record, has_them in (
        (None, None, False),
        (none, None, False),
        (client, None, True),
        (None, REMOVING, True),
        (None, TlsRecord(peer_ca="p"), False),
    ):
        cluster = replace(ephemeral(tls=tls), persisted=PersistedState(tls=record))
        assert cluster.has_client_certificates is has_them
