"""The next step for the certificates of a cluster, one rule after the other."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from etcd_operator.controllers.etcd_cluster.decide.certificates.changes import Change, changed, makes_ca
from etcd_operator.controllers.etcd_cluster.decide.certificates.facts import PATIENCE, reads_bundle
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import (
    ClientLeaf,
    ObservedCertificates,
    Phase,
    Record,
    Situation,
)
from etcd_operator.controllers.etcd_cluster.decide.certificates.steps import (
    Action,
    Alter,
    Deliver,
    Publish,
    Restart,
    first_aid,
    for_clients,
    next_step,
)
from etcd_operator.pki.description import Description
from unit.controllers.etcd_cluster.decide.certificates.certs import (
    CA_LIFE,
    DAY,
    NOW,
    STABLE,
    A,
    B,
    C,
    ca,
    leaf,
    member,
    situation,
)

HOUR = timedelta(hours=1)
THREE = tuple(member(name) for name in ("m0", "m1", "m2"))
TRUSTING = replace(STABLE, phase=Phase.TRUSTING, request="1")
REISSUING = replace(TRUSTING, phase=Phase.REISSUING, issuer="b", since=NOW)
DROPPING = replace(REISSUING, phase=Phase.DROPPING)
DROPPED = replace(DROPPING, trusted=(B, C))
OF_B = tuple(member(name, issuer=B) for name in ("m0", "m1", "m2"))
OF_C = tuple(member(name, issuer=B, bundle=(B, C), loaded=(B, C)) for name in ("m0", "m1", "m2"))
OLD = ca("a", since=NOW - CA_LIFE - HOUR)
OLD_B = ca("b", since=NOW - CA_LIFE - HOUR)


def action(found: Situation) -> Action | None:
    step = next_step(found)
    return step.action if step is not None else None


def message(found: Situation) -> str:
    step = next_step(found)
    assert step is not None
    assert step.action is None
    return step.message


def without_files(name: str) -> ObservedCertificates:
    return ObservedCertificates(name=name, files=None, is_running=False)


@pytest.mark.parametrize(
    "found",
    [
        situation(*THREE),
        situation(*THREE, request="1", record=replace(STABLE, request="1")),
        situation(*THREE, obstacle="m1 (silent)"),
        situation(*THREE, now=NOW + 5 * DAY),
        situation(*THREE[:2], member("m2", is_running=False)),
        replace(situation(*THREE), published=(B, A), clients=(ClientLeaf(name="root", leaf=leaf(A)),)),
        replace(situation(*THREE), offset=timedelta(minutes=-2)),
    ],
)
def test_nothing_is_done_where_all_is_well(found: Situation) -> None:
    assert next_step(found) is None


def test_a_new_member_gets_its_files_and_no_other_is_restarted() -> None:
    found = situation(*THREE, without_files("m3"))
    assert action(found) == Deliver(members=("m3",))
    assert next_step(situation(*THREE, member("m3"))) is None


def test_a_wrong_clock_stops_everything() -> None:
    found = replace(situation(without_files("m0"), request="1"), offset=-timedelta(minutes=3))
    assert message(found) == "the operator's clock is off by 3 min: no certificate is issued until it is set"
    wanted = replace(found, published=(), clients=(ClientLeaf(name="root", leaf=None),))
    assert (first_aid(wanted), for_clients(wanted)) == (None, None)
    right = replace(wanted, offset=timedelta())
    assert None not in (first_aid(right), for_clients(right))


# Leafs


def test_leafs_are_renewed_one_at_a_time_each_proven_before_the_next() -> None:
    later = NOW + 6 * DAY
    assert action(situation(*THREE, now=later)) == Deliver(members=("m0",))
    new = member("m0", since=later)
    assert action(situation(new, *THREE[1:], now=later)) == Deliver(members=("m1",))
    unproven = member("m0", since=later, is_proven=False)
    assert (
        message(situation(unproven, *THREE[1:], now=later)) == "waiting for m0 to present the new certificate"
    )


def test_leafs_that_end_soon_are_all_renewed_at_once() -> None:
    """There may be more members than there is time to prove one by one: they live for nine days."""
    unproven = member("m0", since=NOW + 6 * DAY, is_proven=False)
    found = situation(unproven, *THREE[1:], now=NOW + 7.6 * DAY)
    assert action(found) == Deliver(members=("m1", "m2"))


def test_leafs_are_renewed_without_a_quorum() -> None:
    found = situation(*THREE, now=NOW + 6 * DAY, obstacle="m1 (silent)")
    assert action(found) == Deliver(members=("m0",))


def test_a_member_whose_volume_does_not_follow_delays_the_renewal_of_others_for_a_while_only() -> None:
    issued = NOW + 6 * DAY
    stuck = member("m0", since=issued, is_proven=False)
    later = issued + PATIENCE + timedelta(seconds=1)
    assert action(situation(stuck, *THREE[1:], now=issued + PATIENCE)) is None
    assert action(situation(stuck, *THREE[1:], now=later)) == Deliver(members=("m1",))
    step = next_step(situation(stuck, *(member(name, since=later) for name in ("m1", "m2")), now=later))
    assert step is not None
    assert (step.reason, step.action) == ("TLSInvalid", None)


def test_a_member_that_was_not_asked_yet_is_not_reported() -> None:
    """As after a restart of the operator, or of one that does not answer."""
    unknown = replace(member("m0"), presented="")
    step = next_step(situation(unknown, *THREE[1:], now=NOW + 2 * PATIENCE))
    assert step is not None
    assert (step.reason, step.action) == ("TLSRotating", None)


def test_a_rotation_waits_for_each_member() -> None:
    stuck = member("m0", issuer=B, is_proven=False)
    found = situation(stuck, *THREE[1:], record=REISSUING, now=NOW + 2 * PATIENCE)
    assert action(found) is None


def test_a_leaf_that_lacks_a_name_is_replaced() -> None:
    assert action(situation(THREE[0], member("m1", is_unwanted=True))) == Deliver(members=("m1",))


@pytest.mark.parametrize("later", [10 * DAY, -DAY])
def test_leafs_that_are_not_valid_are_all_replaced_at_once(later: timedelta) -> None:
    wide = tuple(replace(each, not_before=NOW - 9 * DAY, not_after=NOW + 99 * DAY) for each in (A, B))
    members = [
        member(name, bundle=wide, loaded=wide, is_proven=is_proven)
        for name, is_proven in (("m0", True), ("m1", False), ("m2", True))
    ]
    record = replace(STABLE, trusted=wide)
    found = situation(*members, record=record, now=NOW + later, obstacle="a quorum")
    found = replace(found, clients=(ClientLeaf(name="root", leaf=leaf(A)),))
    assert action(found) == Deliver(members=("m0", "m1", "m2"), clients=("root",))


def test_a_secret_that_cannot_be_written_holds_up_a_rotation_and_no_other_leaf() -> None:
    late = replace(situation(*THREE, now=NOW + 7 * DAY), unwritten=frozenset(["m0"]))
    assert action(late) == Deliver(members=("m1",))
    found = replace(situation(*THREE, request="1"), unwritten=frozenset(["m0"]))
    assert "m0 cannot be written" in message(found)


def test_members_that_do_not_run_get_their_files_at_once() -> None:
    found = situation(
        member("m0", issuer=B, is_proven=False), member("m1", is_running=False), record=REISSUING
    )
    assert action(found) == Deliver(members=("m1",))


@pytest.mark.parametrize("old", [None, leaf(B), leaf(A, since=NOW - 6 * DAY)])
def test_leafs_of_clients_are_written(old: Description | None) -> None:
    found = replace(
        situation(*THREE), clients=(ClientLeaf(name="x", leaf=old), ClientLeaf(name="y", leaf=leaf(A)))
    )
    assert action(found) == Deliver(clients=("x",))


# CAs that are renewed


def test_all_cas_are_renewed_when_one_is_due() -> None:
    mixed = replace(STABLE, trusted=(ca("a", since=NOW - CA_LIFE * 2 / 3), B))
    assert action(situation(*THREE, record=mixed, obstacle="m1 (silent)")) == Alter(Change.RENEW)


def test_cas_that_are_to_live_shorter_are_renewed_once_they_are_too_old() -> None:
    for lasts, wanted in ((3 * CA_LIFE, None), (9 * DAY, None), (6 * DAY, Alter(Change.RENEW))):
        assert action(replace(situation(*THREE, now=NOW + 5 * DAY), lasts=lasts)) == wanted


def test_a_renewed_ca_is_published_delivered_proven_and_loaded_in_one_roll() -> None:
    old = (ca("a", since=NOW - 18 * DAY), ca("b", since=NOW - 18 * DAY))
    found = situation(*(member(name, bundle=old, loaded=old) for name in ("m0", "m1")))
    found = replace(found, published=old)
    assert action(found) == Publish()
    found = replace(found, published=(A, B))
    assert action(found) == Deliver(members=("m0",))
    delivered = [member(name, loaded=old) for name in ("m0", "m1")]
    found = replace(found, members=(delivered[0], found.members[1]))
    assert action(found) == Deliver(members=("m1",))
    found = replace(found, members=tuple(delivered))
    assert action(found) == Restart(members=("m0", "m1"))
    waits = "before members load the CAs again: waiting for m1 (silent)"
    assert message(replace(found, obstacle="m1 (silent)")) == waits
    found = replace(found, members=(delivered[0], member("m1")))
    assert action(found) == Restart(members=("m0",))


def test_a_member_of_which_it_is_not_known_what_it_loaded_is_restarted() -> None:
    assert action(situation(THREE[0], member("m1", loaded=None))) == Restart(members=("m1",))


# Rotation


@pytest.mark.parametrize(
    ("found", "change"),
    [
        (situation(*THREE, request="1"), Change.BEGIN),
        (situation(*THREE, record=TRUSTING, request="1"), Change.SWITCH),
        (situation(*OF_B, record=REISSUING, request="1"), Change.SETTLE),
        (situation(*OF_B, record=DROPPING, request="1"), Change.DROP),
        (situation(*OF_C, record=DROPPED, request="1"), Change.END),
    ],
)
def test_a_phase_ends_when_all_have_followed_and_the_cluster_is_healthy(
    found: Situation, change: Change
) -> None:
    assert action(found) == Alter(change)
    assert "waiting for m1 (silent)" in message(replace(found, obstacle="m1 (silent)"))
    stopped = replace(found.members[2], is_running=False)
    assert "waiting for m2 (not running)" in message(replace(found, members=(*found.members[:2], stopped)))
    unproven = replace(found.members[2], presented="former")
    assert "waiting for m2 to present" in message(replace(found, members=(*found.members[:2], unproven)))


@pytest.mark.parametrize(
    ("found", "is_delayed"),
    [
        (situation(*THREE, request="1"), False),
        (situation(*THREE, record=replace(TRUSTING, since=NOW)), True),
        (situation(*OF_B, record=REISSUING), False),
        (situation(*OF_B, record=DROPPING), True),
        (situation(*OF_C, record=DROPPED), False),
    ],
)
def test_clients_have_their_time(found: Situation, is_delayed: bool) -> None:
    found = replace(found, grace=HOUR)
    if is_delayed:
        assert message(found).startswith(
            "clients have until 2026-01-01T01:00:00Z to load certificates; then "
        )
    assert isinstance(action(replace(found, now=NOW + HOUR)), Alter)
    assert (action(found) is None) is is_delayed


def test_clients_have_no_more_than_their_time_although_the_clock_was_set_back() -> None:
    ahead = replace(TRUSTING, since=NOW + DAY)
    assert action(situation(*THREE, record=ahead, grace=HOUR)) == Alter(Change.DATE)
    assert changed(ahead, Change.DATE, now=NOW).since == NOW
    little = replace(TRUSTING, since=NOW + timedelta(minutes=2))
    assert action(situation(*THREE, record=little, grace=HOUR)) is None


def test_the_time_of_clients_begins_with_the_publication() -> None:
    record = changed(replace(STABLE, trusted=(A,)), Change.BEGIN, now=NOW, request="1", made=(B,))
    found = replace(situation(*THREE, record=record, grace=HOUR), published=(A,))
    assert action(found) == Publish()
    found = replace(found, published=(A, B), now=NOW + 2 * HOUR)
    assert action(found) == Alter(Change.DATE)
    found = replace(found, record=changed(record, Change.DATE, now=found.now))
    assert message(found).startswith("clients have until 2026-01-01T03:00:00Z to load certificates")


def test_the_next_ca_is_trusted_long_before_so_a_rotation_begins_without_a_roll() -> None:
    record = changed(STABLE, Change.BEGIN, now=NOW, request="1")
    assert record.since == STABLE.since
    found = situation(*THREE, record=record, grace=HOUR, request="1")
    assert action(found) == Alter(Change.SWITCH)


def test_without_a_next_ca_one_is_made_and_loaded_first() -> None:
    alone = replace(STABLE, trusted=(A,))
    assert makes_ca(alone, Change.BEGIN)
    record = changed(alone, Change.BEGIN, now=NOW, request="1", made=(B,))
    assert (record.trusted, record.since, record.phase) == ((A, B), None, Phase.TRUSTING)
    assert action(situation(*THREE, record=record)) == Alter(Change.DATE)
    record = changed(record, Change.DATE, now=NOW)
    members = [member(name, bundle=(A,), loaded=(A,)) for name in ("m0", "m1")]
    assert action(situation(*members, record=record)) == Deliver(members=("m0",))
    delivered = [member(name, loaded=(A,)) for name in ("m0", "m1")]
    assert action(situation(*delivered, record=record)) == Restart(members=("m0", "m1"))


def test_the_old_ca_goes_and_the_next_one_comes_in_one_roll() -> None:
    record = changed(DROPPING, Change.DROP, now=NOW, made=(C,))
    assert record == replace(DROPPING, trusted=(B, C), since=None)
    record = changed(record, Change.DATE, now=NOW)
    members = [member(name, issuer=B, bundle=(B, C)) for name in ("m0", "m1")]
    assert action(situation(*members, record=record)) == Restart(members=("m0", "m1"))
    assert changed(record, Change.END, now=NOW).phase is Phase.STABLE


def test_the_record_through_a_rotation() -> None:
    assert changed(STABLE, Change.RENEW, now=NOW, made=(OLD, B)).trusted == (OLD, B)
    switched = changed(TRUSTING, Change.SWITCH, now=NOW)
    assert (switched.issuer, switched.phase, switched.next, switched.has_old) == (
        "b",
        Phase.REISSUING,
        None,
        True,
    )
    assert changed(REISSUING, Change.SWITCH, now=NOW).issuer == "b"
    assert changed(switched, Change.SETTLE, now=NOW).phase is Phase.DROPPING
    needs = {change for change in Change if makes_ca(STABLE, change)}
    assert needs == {Change.DROP}


# Everything expired


def expired(*names: str, record: Record) -> Situation:
    """Members that were started with CAs that have expired, and have new files by now."""
    members = [member(name, loaded=(OLD, OLD_B), bundle=record.trusted) for name in names]
    return situation(*members, record=record, obstacle="a quorum")


def test_expired_cas_are_renewed_and_all_files_replaced_at_once() -> None:
    old = replace(STABLE, trusted=(OLD, OLD_B))
    members = [member(name, issuer=OLD, bundle=(OLD, OLD_B), loaded=(OLD, OLD_B)) for name in ("m0", "m1")]
    found = situation(*members, record=old, obstacle="a quorum")
    assert action(found) == Alter(Change.RENEW)
    assert action(replace(found, record=STABLE)) == Deliver(members=("m0", "m1"))


def test_members_that_trust_expired_cas_only_are_restarted_one_at_a_time_without_a_quorum() -> None:
    found = expired("m0", "m1", "m2", record=STABLE)
    assert action(found) == Restart(members=("m0",), is_forced=True)
    stopped = replace(found.members[0], is_running=False)
    waits = "waiting for m0 to run: the members refuse each other's certificates"
    assert message(replace(found, members=(stopped, *found.members[1:]))) == waits
    found = replace(found, members=(THREE[0], *found.members[1:]))
    assert action(found) == Restart(members=("m1",), is_forced=True)
    found = replace(found, members=(*THREE[:2], found.members[2]))
    assert action(found) == Restart(members=("m2",), is_forced=True)


def test_a_restart_that_loads_the_new_cas_is_not_asked_for_before_they_are_there() -> None:
    found = expired("m0", record=STABLE)
    unproven = replace(found.members[0], presented="former")
    assert "waiting for m0 to present" in message(replace(found, members=(unproven,)))


def test_the_next_ca_signs_at_once_if_the_issuer_has_expired_and_all_trust_it() -> None:
    record = replace(STABLE, trusted=(OLD, B))
    members = [member(name, issuer=OLD, bundle=(OLD, B), loaded=(OLD, B)) for name in ("m0", "m1")]
    found = situation(*members, record=record, obstacle="a quorum", grace=HOUR)
    assert action(found) == Alter(Change.SWITCH)
    switched = changed(record, Change.SWITCH, now=NOW)
    renewed = changed(switched, Change.RENEW, now=NOW, made=(A, B))
    assert action(replace(found, record=switched)) == Alter(Change.RENEW)
    assert action(replace(found, record=renewed)) == Deliver(members=("m0", "m1"))


@pytest.mark.parametrize("loaded", [(OLD,), None])
def test_the_next_ca_does_not_sign_if_one_member_does_not_trust_it(
    loaded: tuple[Description, ...] | None,
) -> None:
    record = replace(STABLE, trusted=(OLD, B))
    members = (
        member("m0", issuer=OLD, loaded=(OLD, B)),
        member("m1", issuer=OLD, loaded=loaded),
    )
    assert action(situation(*members, record=record)) == Alter(Change.RENEW)


def test_nothing_is_published_of_a_ca_that_cannot_sign() -> None:
    expired = situation(*THREE, record=replace(STABLE, trusted=(OLD, B)))
    assert for_clients(replace(expired, published=())) is None
    assert for_clients(replace(situation(*THREE), published=())) is not None


def test_before_the_bundle_is_published_only_members_with_nothing_to_lose_get_files() -> None:
    record = replace(STABLE, since=None)
    renamed = (member("m0", is_unwanted=True), *THREE[1:])
    assert first_aid(situation(*renamed, record=record)) is None
    away = (member("m0", is_unwanted=True, is_running=False), *THREE[1:])
    step = first_aid(situation(*away, record=record))
    assert step is not None
    assert step.action == Deliver(members=("m0",))


@pytest.mark.parametrize(
    ("loaded", "since", "is_read"),
    [
        ((A, B), NOW, True),
        ((A,), NOW, False),
        (None, NOW, False),
        (None, NOW - DAY, False),
    ],
)
def test_a_member_reads_a_bundle_that_it_had_or_that_was_written_long_ago(
    loaded: tuple[Description, ...] | None, since: datetime, is_read: bool
) -> None:
    """However old its leaf is: a CA that is renewed keeps the leafs."""
    found = situation(member("m0", loaded=loaded, since=since))
    assert reads_bundle(found, "m0") is is_read
    assert reads_bundle(replace(found, now=NOW + PATIENCE + HOUR), "m0")
    assert not reads_bundle(replace(found, members=(replace(found.members[0], files=None),)), "m0")
    assert not reads_bundle(found, "m1")
