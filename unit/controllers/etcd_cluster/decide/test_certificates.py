"""TLS: what is missing or due later is written again, and CAs are rotated step by step."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from etcd_operator.api.persisted import Adoption, TlsRecord, Upgrade
from etcd_operator.api.tls import ClientTls, IssuerRef, PeerTls, SecretRef, Tls, UserSecret
from etcd_operator.controllers.etcd_cluster.decide.actions import (
    MoveLeader,
    Plan,
    Remember,
    ReplaceMember,
    Stage,
)
from etcd_operator.controllers.etcd_cluster.decide.certificates.acts import (
    AlterAuthorities,
    KeepCertificates,
    PublishAuthority,
    RequestCertificates,
)
from etcd_operator.controllers.etcd_cluster.decide.certificates.changes import Change
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import (
    ClientLeaf,
    Files,
    IssuedLeaf,
    Phase,
    Record,
    Situation,
    SuppliedFacts,
    Unloaded,
)
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.facts.authorities import next_steps
from etcd_operator.controllers.etcd_cluster.decide.facts.expiries import expiries, near_end
from etcd_operator.controllers.etcd_cluster.decide.members import quorum
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.rules.certificates import rotate
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState, TlsFacts, Unseen
from etcd_operator.controllers.etcd_cluster.decide.status import conditions
from etcd_operator.pki.description import Description
from unit.controllers.etcd_cluster.decide.builders import (
    VERSION,
    bootstrapped,
    down,
    ephemeral,
    first_recovery,
    persistent,
    pod,
    with_record,
)
from unit.controllers.etcd_cluster.decide.certificates import certs
from unit.controllers.etcd_cluster.decide.initial_members import BOTH
from unit.controllers.etcd_cluster.decide.peering_states import peering
from unit.controllers.etcd_cluster.decide.tls_states import RECORD, at_rest, secured, with_one
from unit.controllers.etcd_cluster.decide.upgrade.upgrade_states import led_by


def waiting_for_proof(cluster: DesiredCluster, record: Record = certs.STABLE) -> Situation:
    return with_one(at_rest(cluster, record=record), presented="former")


@BOTH
def test_what_is_missing_is_written_once_for_both_sides_without_a_word(cluster: DesiredCluster) -> None:
    name = cluster.member_name(0)
    lost = with_one(at_rest(cluster), files=None)
    unpublished = replace(lost, published=(), clients=(ClientLeaf(name="db-client", leaf=None),))
    made = plan(secured(cluster, unpublished, lost))
    assert made.actions == (KeepCertificates(name=name),)
    assert made.is_quiet


@BOTH
def test_what_clients_need_is_written_without_a_word(cluster: DesiredCluster) -> None:
    lacks = at_rest(cluster, clients=(ClientLeaf(name="db-client", leaf=None),))
    made = plan(secured(cluster, lacks))
    assert made.actions == (KeepCertificates(name="db-client"),)
    assert made.is_quiet
    made = plan(secured(cluster, replace(lacks, published=())))
    assert made.actions == (PublishAuthority(),)
    assert made.is_quiet


def test_what_clients_need_comes_after_a_repair() -> None:
    """Somebody else's object of that name may refuse it for ever."""
    state = secured(ephemeral(), at_rest(ephemeral(), published=()))
    made = plan(down(state, state.members[0].name, pod=None))
    assert made.actions
    assert PublishAuthority() not in made.actions


def test_a_leaf_is_renewed_although_clients_find_no_bundle() -> None:
    cluster = ephemeral()
    renews = replace(at_rest(cluster, published=()), now=certs.NOW + 7 * certs.DAY)
    made = plan(secured(cluster, renews))
    assert made.actions == (KeepCertificates(name=cluster.member_name(0)),)


@BOTH
def test_nothing_is_written_while_all_is_current(cluster: DesiredCluster) -> None:
    made = plan(secured(cluster, at_rest(cluster), at_rest(cluster)))
    assert made.actions == plan(bootstrapped(cluster)).actions
    made = plan(secured(cluster, waiting_for_proof(cluster)))
    assert (made.actions, made.stage) == ((), Stage.SETTLED)


@BOTH
def test_members_that_have_loaded_other_cas_are_restarted_like_in_an_upgrade(cluster: DesiredCluster) -> None:
    last = cluster.member_name(2)
    found = at_rest(cluster)
    found = replace(found, members=tuple(replace(m, loaded=(certs.A,)) for m in found.members))
    state = replace(secured(cluster, found), budget=3)
    made = plan(state)
    begun = Upgrade(origin=VERSION, target=VERSION, member=last, restart=True)
    assert made.actions == (
        Remember(persisted=replace(state.persisted, upgrade=begun)),
        ReplaceMember(name=last, version=VERSION),
    )
    assert made.reason == "TLSRotating"
    assert plan(led_by(state, last)).actions[1:] == (
        MoveLeader(name=cluster.member_name(0), member_id=f"id-{cluster.member_name(0)}"),
    )
    away = plan(down(with_record(state, upgrade=begun), last))
    assert not any(isinstance(action, ReplaceMember) for action in away.actions)


@BOTH
def test_no_member_is_restarted_before_the_one_before_is_proven(cluster: DesiredCluster) -> None:
    """A new pod first shows that it has the files."""
    begun = Upgrade(origin=VERSION, target=VERSION, member=cluster.member_name(2), restart=True)
    found = at_rest(cluster)
    first, second, third = found.members
    members = (replace(first, loaded=(certs.A,)), second, replace(third, presented="former"))
    state = with_record(secured(cluster, replace(found, members=members)), upgrade=begun)
    made = plan(state)
    assert (made.actions, made.reason) == ((), "TLSRotating")
    done = plan(with_record(secured(cluster, at_rest(cluster)), upgrade=begun))
    assert done.actions == (Remember(persisted=with_record(state, upgrade=None).persisted),)


@BOTH
def test_restarts_are_not_over_while_certificates_cannot_be_read(cluster: DesiredCluster) -> None:
    begun = Upgrade(origin=VERSION, target=VERSION, member=cluster.member_name(2), restart=True)
    unkept = Unseen(reason="TLSUnreadable", message="no KMS")
    state = with_record(secured(cluster, unkept=unkept), upgrade=begun)
    made = plan(replace(state, budget=3))
    assert (made.actions, made.stage) == ((), Stage.WORKING)
    assert "no KMS" in made.message
    made = plan(with_record(state, upgrade=None))
    assert (made.actions, made.reason, made.stage) == ((), "TLSUnreadable", Stage.HELD)


@BOTH
def test_a_version_is_desired_in_the_middle_of_restarts(cluster: DesiredCluster) -> None:
    begun = Upgrade(origin=VERSION, target=VERSION, member=cluster.member_name(2), restart=True)
    state = with_record(secured(replace(cluster, version="3.7.3"), at_rest(cluster)), upgrade=begun)
    (first, *_) = plan(replace(state, budget=3)).actions
    assert isinstance(first, Remember)
    assert first.persisted.upgrade is not None
    assert not first.persisted.upgrade.restart


@BOTH
@pytest.mark.parametrize(
    ("record", "awaited"),
    [
        ({"recovery": first_recovery("db-3")}, "the end of the recovery"),
        ({"adoption": Adoption(members=())}, "the end of the adoption"),
        ({"cluster_id": ""}, None),
    ],
)
def test_no_member_is_restarted_while_a_cluster_is_made_of_others(
    cluster: DesiredCluster, record: dict[str, Any], awaited: str | None
) -> None:
    outdated = with_one(at_rest(cluster), loaded=None)
    found = next_steps(with_record(secured(cluster, outdated), **record))
    assert [step.message for _, _, step in found] == (
        [f"before members load the CAs again: waiting for {awaited}"] if awaited else []
    )


@BOTH
def test_restarts_wait_for_a_member_that_is_away_and_for_a_quorum(cluster: DesiredCluster) -> None:
    state = secured(cluster, with_one(at_rest(cluster), loaded=None))
    name = cluster.member_name(1)
    away = with_record(down(state, name), upgrade=Upgrade(origin=VERSION, target=VERSION, member=name))
    for each, awaited in (
        (away, f"{name}, which is being restarted"),
        (replace(state, has_quorum=False), "a quorum"),
    ):
        ((_, _, step),) = next_steps(each)
        assert step.message == f"before members load the CAs again: waiting for {awaited}"


@BOTH
def test_a_member_that_is_ended_for_a_restart_does_not_serve(cluster: DesiredCluster) -> None:
    state = secured(cluster, at_rest(cluster))
    member = state.members[0]
    assert member.pod is not None
    assert member.serves_requested_version
    ended = replace(member, pod=replace(member.pod, is_restarting=True))
    assert not ended.serves_requested_version


@BOTH
def test_a_rotation_takes_each_step_that_no_other_rule_has_taken(cluster: DesiredCluster) -> None:
    """As where what clients need is somebody else's."""
    unpublished = rotate(secured(cluster, at_rest(cluster, published=())))
    assert unpublished is not None
    assert unpublished.actions == (PublishAuthority(),)
    name = cluster.member_name(0)
    lacking = rotate(secured(cluster, with_one(at_rest(cluster), files=None)))
    assert lacking is not None
    assert lacking.actions == (KeepCertificates(name=name),)


@BOTH
def test_a_rotation_begins_when_it_is_requested_and_the_cluster_is_healthy(cluster: DesiredCluster) -> None:
    state = secured(cluster, at_rest(cluster, request="1"))
    made = plan(state)
    assert made.actions == (AlterAuthorities(side="client", change=Change.BEGIN, request="1", version="7"),)
    assert made.reason == "TLSRotating"
    one_down = plan(down(state, cluster.member_name(0)))
    assert not any(isinstance(action, AlterAuthorities) for action in one_down.actions)


@BOTH
def test_a_rotation_reports_what_it_waits_for(cluster: DesiredCluster) -> None:
    record = replace(certs.STABLE, phase=Phase.REISSUING)
    made = plan(secured(cluster, waiting_for_proof(cluster, record)))
    assert (made.actions, made.reason, made.stage) == ((), "TLSRotating", Stage.WORKING)
    late = replace(waiting_for_proof(cluster, record), now=certs.NOW + certs.DAY)
    refusals = ((cluster.member_name(0), "certificate has expired"),)
    made = plan(secured(cluster, late, refusals=refusals))
    assert (made.actions, made.reason, made.stage) == ((), "TLSInvalid", Stage.HELD)
    assert "certificate has expired" in made.message


@BOTH
def test_a_side_goes_on_while_the_other_one_waits(cluster: DesiredCluster) -> None:
    waiting = waiting_for_proof(cluster, replace(certs.STABLE, phase=Phase.REISSUING))
    state = secured(cluster, waiting)
    for sides in (
        (("client", waiting), ("peer", at_rest(cluster, request="1"))),
        (("peer", at_rest(cluster, request="1")), ("client", waiting)),
    ):
        made = plan(replace(state, tls=replace(state.tls, sides=sides)))
        assert made.actions == (AlterAuthorities(side="peer", change=Change.BEGIN, request="1", version="7"),)


@BOTH
def test_the_ca_that_signs_is_recorded_before_the_old_one_is_dropped(cluster: DesiredCluster) -> None:
    record = replace(certs.STABLE, phase=Phase.DROPPING, issuer="b")
    members = tuple(certs.member(n, issuer=certs.B) for n in cluster.initial_member_names)
    found = replace(at_rest(cluster, record=record), members=members)
    state = secured(cluster, found)
    made = plan(replace(state, tls=replace(state.tls, client_ca="b")))
    assert made.actions == (
        Remember(persisted=replace(state.persisted, tls=msgspec.structs.replace(RECORD, client_ca="b"))),
    )


@BOTH
def test_members_that_refuse_each_other_are_restarted_without_a_quorum(cluster: DesiredCluster) -> None:
    """Their CA has expired, and was renewed."""
    now = certs.NOW + 100 * certs.DAY
    renewed = tuple(certs.ca(key, since=now) for key in "ab")
    record = replace(certs.STABLE, trusted=renewed)
    members = tuple(
        certs.member(name, issuer=renewed[0], bundle=renewed, since=now)
        for name in cluster.initial_member_names
    )
    found = replace(at_rest(cluster, record=record, now=now), members=members, published=renewed)
    state = down(secured(cluster, found), *cluster.initial_member_names)
    state = replace(state, has_quorum=False)
    made = plan(state)
    assert made.actions == (ReplaceMember(name=cluster.member_name(0), version=VERSION),)
    assert not made.is_quiet
    gone = down(state, cluster.member_name(0), peer=None, pod=pod("p", is_running=False))
    others = replace(found, members=members[1:])
    waits = plan(replace(gone, tls=replace(gone.tls, sides=(("client", others),))))
    assert not any(isinstance(action, ReplaceMember) for action in waits.actions)


@BOTH
@pytest.mark.parametrize("side", ["peer", "client"])
def test_a_request_to_rotate_a_ca_that_is_not_there_is_reported(cluster: DesiredCluster, side: str) -> None:
    asked: dict[str, Any] = {f"rotate_{side}_ca": "1"}
    made = plan(bootstrapped(replace(cluster, **asked)))
    assert (made.reason, made.stage, made.actions) == ("TLSRefused", Stage.HELD, ())
    assert f"rotate-{side}-ca" in made.message
    state = secured(replace(cluster, **asked), at_rest(cluster), at_rest(cluster))
    assert plan(state).reason != "TLSRefused"


LEAF = IssuedLeaf(file="server", leaf=certs.leaf(certs.A), ca=certs.A)
ISSUED = replace(certs.STABLE, trusted=(certs.A,), leafs=(LEAF,))


@BOTH
def test_cert_manager_is_asked_again_without_a_word_and_what_it_refuses_is_reported(
    cluster: DesiredCluster,
) -> None:
    made = plan(secured(cluster, at_rest(cluster), is_unrequested=True))
    assert made.actions == (RequestCertificates(),)
    assert made.is_quiet
    refused = Unseen(reason="TLSInvalid", message="Certificate x is not ready")
    made = plan(secured(cluster, at_rest(cluster), unissued=refused))
    assert (made.stage, made.reason, made.message) == (Stage.HELD, "TLSInvalid", refused.message)
    made = plan(secured(cluster, at_rest(cluster), unissued=replace(refused, reason="Creating")))
    assert made.stage is Stage.SETTLED


def renewed(cluster: DesiredCluster, authority: Description, record: Record = ISSUED) -> Situation:
    """cert-manager has issued another leaf; members have the former one."""
    offered = (replace(LEAF, leaf=certs.leaf(authority), ca=authority),)
    members = tuple(
        replace(
            each, files=Files(leaf=LEAF.leaf, bundle=(certs.A,)), presented=LEAF.serial, loaded=(certs.A,)
        )
        for each in at_rest(cluster).members
    )
    return replace(at_rest(cluster, record=record, offered=offered, published=(certs.A,)), members=members)


UNASKED = Unseen(reason="TLSInvalid", message="expired", is_asked=False)


@pytest.mark.parametrize("unseen", [None, UNASKED])
@pytest.mark.parametrize("is_trusted", [True, False])
def test_what_cert_manager_has_renewed_is_taken_while_a_cluster_is_paused_or_cannot_be_asked(
    is_trusted: bool, unseen: Unseen | None
) -> None:
    cluster = ephemeral(is_paused=unseen is None)
    found = renewed(cluster, certs.A if is_trusted else certs.B)
    made = plan(replace(secured(cluster, found), unseen=unseen))
    change = Change.TAKE if is_trusted else Change.TRUST
    assert made.actions == (AlterAuthorities(side="client", change=change, request="", version="7"),)


def test_what_is_on_record_is_delivered_while_no_member_can_be_asked() -> None:
    cluster = ephemeral()
    found = renewed(cluster, certs.A)
    found = replace(found, record=replace(ISSUED, leafs=found.offered))
    state = secured(cluster, found)
    first = KeepCertificates(name=state.members[0].name)
    assert plan(replace(state, unseen=UNASKED)).actions == (first,)
    made = plan(replace(state, unseen=replace(UNASKED, is_asked=True)))
    assert (made.reason, made.stage, made.actions) == ("TLSInvalid", Stage.HELD, ())


@pytest.mark.parametrize(("is_paused", "unseen"), [(True, None), (False, UNASKED)])
def test_cert_manager_is_asked_and_peers_get_certificates_although_members_cannot_be_restarted(
    is_paused: bool, unseen: Unseen | None
) -> None:
    """The CA of clients has expired in all members."""
    cluster = ephemeral(is_paused=is_paused)
    now = certs.NOW + 2 * certs.CA_LIFE
    found = replace(at_rest(cluster, record=ISSUED, published=(certs.A,)), now=now)
    lost = replace(found, members=renewed(cluster, certs.A).members)
    state = replace(secured(cluster, lost, is_unrequested=True), unseen=unseen)
    assert plan(state).actions == (RequestCertificates(),)
    state = replace(secured(cluster, lost, with_one(at_rest(cluster), files=None)), unseen=unseen)
    assert plan(state).actions == (KeepCertificates(name=state.members[0].name),)
    assert not plan(replace(secured(cluster, lost), unseen=unseen)).actions


def test_a_rotation_of_a_ca_of_cert_manager_is_refused() -> None:
    asked = secured(ephemeral(rotate_client_ca="1"), at_rest(ephemeral()))
    issued = msgspec.structs.replace(RECORD, client_issuer=IssuerRef(name="ours"))
    assert plan(with_record(asked, tls=issued)).reason == "TLSRefused"


def test_a_former_ca_of_cert_manager_may_expire() -> None:
    record = replace(ISSUED, trusted=(certs.ca("old", life=certs.DAY), certs.A))
    state = secured(persistent(), replace(at_rest(persistent(), record=record), members=(), clients=()))
    assert [(each.kind, each.end) for each in expiries(state)] == [
        ("client", LEAF.leaf.not_after),
        ("client-ca", certs.A.not_after),
    ]


def shown(state: ClusterState, kind: str) -> tuple[str, str, str]:
    found = next(each for each in conditions(state, Plan.settled()) if each.type == kind)
    return found.status, found.reason, found.message


@BOTH
def test_conditions_say_how_far_a_rotation_is(cluster: DesiredCluster) -> None:
    assert shown(secured(cluster, at_rest(cluster)), "TLSRotating")[:2] == ("False", "AsExpected")
    record = replace(certs.STABLE, phase=Phase.REISSUING)
    status, reason, message = shown(secured(cluster, waiting_for_proof(cluster, record)), "TLSRotating")
    assert (status, reason) == ("True", "ClientReissuing")
    assert "to present the new certificate" in message
    begun = Upgrade(origin=VERSION, target=VERSION, member=cluster.member_name(0), restart=True)
    restarting = with_record(secured(cluster, at_rest(cluster)), upgrade=begun)
    assert shown(restarting, "TLSRotating")[:2] == ("True", "Restarting")


@BOTH
@pytest.mark.parametrize(("days", "status"), [(6.0, "False"), (7.4, "False"), (7.6, "True"), (10.0, "True")])
def test_a_leaf_that_is_not_renewed_is_reported_while_it_is_valid(
    cluster: DesiredCluster, days: float, status: str
) -> None:
    """It lives for nine days, and is due after six."""
    found = at_rest(cluster, now=certs.NOW + days * certs.DAY)
    made = shown(secured(cluster, found), "CertificateExpiring")
    assert made[0] == status
    assert ("client (2026-01-10T00:00:00Z)" in made[2]) == (status == "True")


def test_a_member_that_was_ended_for_a_restart_is_started_whatever_else_holds() -> None:
    state = secured(ephemeral(is_paused=True), at_rest(ephemeral()))
    name = state.members[0].name
    state = down(state, name, pod=pod(name, is_running=False, is_restarting=True))
    made = plan(state)
    assert made.actions == (ReplaceMember(name=name, version=VERSION),)


PEER_1, CLIENT_0 = Unloaded(side="peer", name="db-1"), Unloaded(side="client", name="db-0")
REFUSING_1 = replace(PEER_1, is_refusing=True)


@pytest.mark.parametrize(
    ("unloaded", "is_settled", "reason", "told"),
    [
        ([PEER_1], False, "TLSRotating", "db-1 will be restarted to load the CAs in Secret p, once volumes"),
        (
            [PEER_1, CLIENT_0],
            False,
            "TLSRotating",
            "db-0, db-1 will be restarted to load the CAs in Secret s, p",
        ),
        (
            [CLIENT_0],
            False,
            "TLSRotating",
            "db-0 will be restarted to load the CAs in Secret s, once volumes",
        ),
        ([CLIENT_0], True, "Protecting", "protecting the quorum from evictions"),  # the roll begins
        (
            [REFUSING_1, CLIENT_0],
            True,
            "TLSInvalid",
            "db-1 have loaded no CA that has signed the certificate in Secret p",
        ),
        ([], True, "Settled", ""),
    ],
)
def test_members_load_the_cas_of_the_user_once_that_is_safe(
    unloaded: list[Unloaded], is_settled: bool, reason: str, told: str
) -> None:
    """The first one to be restarted would be alone if others refuse the certificate of their peers."""
    record = TlsRecord(peer_secret=UserSecret(name="p"), client_secret=UserSecret(name="s"))
    client = ClientTls(secret_ref=SecretRef(name="s"), client_cert_auth=False)
    wanted = Tls(peer=PeerTls(secret_ref=SecretRef(name="p")), client=client)
    state = peering(bootstrapped(replace(persistent(), tls=wanted)), *("Require",) * 3)
    leaf = certs.certificate(key="l", issuer="ca", since=certs.NOW, life=certs.DAY, is_ca=False)
    supplied = SuppliedFacts(keys="tls", leaf=leaf, is_settled=is_settled)
    known = TlsFacts(unloaded=tuple(unloaded), supplied=(("peer", supplied), ("client", supplied)))
    made = plan(replace(with_record(state, tls=record), tls=known))
    assert (made.reason, told in made.message) == (reason, True), made.message


@pytest.mark.parametrize(("size", "version"), [(3, "3.6.17"), (5, VERSION), (1, VERSION)])
def test_no_member_is_changed_while_others_refuse_their_certificate(size: int, version: str) -> None:
    """One that starts, or starts again, would be alone with the new CA."""
    wanted = Tls(peer=PeerTls(secret_ref=SecretRef(name="p")))
    state = peering(bootstrapped(replace(persistent(), tls=wanted)), *("Require",) * 3)
    state = with_record(state, tls=TlsRecord(peer_secret=UserSecret(name="p")))
    changed = replace(state.desired, size=size, version=version)
    state = replace(state, desired=changed, budget=quorum(max(3, size)))
    made = plan(replace(state, tls=TlsFacts(unloaded=(REFUSING_1,))))
    assert (made.reason, made.actions) == ("TLSInvalid", ())


@pytest.mark.parametrize("is_late", [False, True])
def test_certificates_of_the_user_expire_too(is_late: bool) -> None:
    leaf = certs.certificate(key="l", issuer="ca", since=certs.NOW, life=certs.DAY, is_ca=False)
    facts = SuppliedFacts(keys="tls", leaf=leaf, is_late=is_late)
    state = replace(bootstrapped(persistent()), tls=TlsFacts(supplied=(("peer", facts), ("operator", facts))))
    assert [(each.kind, each.end) for each in expiries(state)] == [("peer", leaf.not_after)]
    assert bool(near_end(state)) is is_late


def test_a_side_without_certificates_of_members_has_those_of_its_cas() -> None:
    state = secured(persistent(), replace(at_rest(persistent()), members=(), clients=()))
    assert [each.kind for each in expiries(state)] == ["client-ca"]
