"""A CA of cert-manager is trusted by all before what it has signed is taken, whenever it has another key."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from etcd_operator.controllers.etcd_cluster.decide.certificates.changes import Change, changed
from etcd_operator.controllers.etcd_cluster.decide.certificates.facts import PATIENCE, reads_bundle
from etcd_operator.controllers.etcd_cluster.decide.certificates.issuers import MOST_TRUSTED
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import (
    Files,
    IssuedLeaf,
    ObservedCertificates,
    Phase,
    Record,
    Situation,
)
from etcd_operator.controllers.etcd_cluster.decide.certificates.steps import (
    UNWRITTEN,
    Action,
    Alter,
    Deliver,
    Restart,
    first_aid,
    next_step,
)
from etcd_operator.pki.decode import MOST_CERTIFICATES
from etcd_operator.pki.description import Description
from unit.controllers.etcd_cluster.decide.certificates.certs import (
    DAY,
    LEAF_LIFE,
    NOW,
    A,
    B,
    C,
    ca,
    leaf,
    situation,
)
from unit.controllers.etcd_cluster.decide.certificates.issued_world import KEEPS, IssuedWorld

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def issued(*cas: Description, since: timedelta = timedelta()) -> tuple[IssuedLeaf, ...]:
    """What the listener and the operator have, of these CAs."""
    return tuple(
        IssuedLeaf(file=file, leaf=leaf(each, since=NOW + since), ca=each)
        for file, each in zip(("server", "operator"), cas, strict=True)
    )


OF_A = issued(A, A)
RECORD = Record(trusted=(A,), issuer="a", since=NOW, leafs=OF_A, changed=NOW)


def member(
    name: str,
    record: Record = RECORD,
    *,
    loaded: tuple[Description, ...] | None = None,
    is_proven: bool = True,
    is_running: bool = True,
) -> ObservedCertificates:
    """With what is on record."""
    files = Files(leaf=record.leafs[0].leaf, bundle=record.trusted)
    return ObservedCertificates(
        name=name,
        files=files,
        is_running=is_running,
        presented=files.leaf.serial if is_proven else "former",
        loaded=loaded if loaded is not None else record.trusted,
    )


def found_of(record: Record = RECORD, offered: tuple[IssuedLeaf, ...] = OF_A, **changes: object) -> Situation:
    members = [member(name, record) for name in ("m0", "m1", "m2")]
    found = replace(situation(*members, record=record), offered=offered, grace=HOUR, keeps=KEEPS)
    return replace(found, **changes)  # type: ignore[arg-type]


def action(found: Situation) -> Action | None:
    step = next_step(found)
    return step.action if step is not None else None


RENEWED = issued(A, A, since=6 * DAY)
OF_B = issued(B, B)
OF_C = issued(C, C)
MIXED = issued(A, B)
AGAIN = issued(A, A)
TRUSTING = changed(RECORD, Change.TRUST, now=NOW, offered=OF_B)
TRUSTED = replace(TRUSTING, since=NOW)
TAKEN = changed(TRUSTED, Change.TAKE, now=NOW, offered=OF_B)
STABLE_AGAIN = changed(TAKEN, Change.END, now=NOW)


@pytest.mark.parametrize(
    "found",
    [
        found_of(),
        found_of(offered=()),
        found_of(now=NOW + 8 * DAY),  # cert-manager is late, and the operator cannot help it
        found_of(STABLE_AGAIN, OF_B),
        found_of(replace(RECORD, request="1"), request=""),
    ],
)
def test_nothing_is_done_where_all_have_what_is_offered(found: Situation) -> None:
    assert next_step(found) is None


def test_a_renewed_leaf_is_taken_without_a_quorum_and_delivered_one_by_one() -> None:
    later = NOW + 6 * DAY
    found = found_of(offered=RENEWED, now=later, obstacle="a quorum")
    assert action(found) == Alter(Change.TAKE)
    aid = first_aid(found)
    assert aid is not None
    assert aid.action == Alter(Change.TAKE)
    record = changed(RECORD, Change.TAKE, now=later, offered=RENEWED)
    assert (record.phase, record.since, record.issuer) == (Phase.STABLE, NOW, "a")
    found = replace(found, record=record)
    assert action(found) == Deliver(members=("m0",))
    found = replace(found, members=(member("m0", record, is_proven=False), *found.members[1:]))
    assert action(found) is None
    # It may have been issued long before: time counts from when it was taken.
    assert action(replace(found, now=later + PATIENCE)) is None
    assert action(replace(found, now=later + PATIENCE + HOUR)) == Deliver(members=("m1",))


def test_another_ca_is_trusted_and_loaded_before_what_it_has_signed_is_taken() -> None:
    found = found_of(offered=OF_B)
    assert action(found) == Alter(Change.TRUST)
    assert action(replace(found, obstacle="m1 (silent)")) == Alter(Change.TRUST)
    assert (TRUSTING.trusted, TRUSTING.issuer, TRUSTING.phase, TRUSTING.since) == (
        (A, B),
        "a",
        Phase.TRUSTING,
        None,
    )
    assert action(replace(found, record=TRUSTED)) == Deliver(members=("m0", "m1", "m2"))
    members = tuple(member(name, TRUSTED, loaded=(A,)) for name in ("m0", "m1"))
    assert action(replace(found, record=TRUSTED, members=members)) == Restart(members=("m0", "m1"))
    found = found_of(TRUSTED, OF_B)
    step = next_step(found)
    assert step is not None
    assert step.message.startswith("clients have until 2026-01-01T01:00:00Z to load certificates; then")
    later = replace(found, now=NOW + HOUR)
    assert action(later) == Alter(Change.TAKE)
    assert action(replace(later, obstacle="m1 (silent)")) is None
    assert (TAKEN.trusted, TAKEN.issuer, TAKEN.phase, TAKEN.leafs) == ((A, B), "b", Phase.REISSUING, OF_B)
    assert action(found_of(TAKEN, OF_B)) == Alter(Change.END)
    assert (STABLE_AGAIN.phase, STABLE_AGAIN.since) == (Phase.STABLE, NOW)


def test_while_it_is_not_known_what_is_offered_a_ca_that_is_being_trusted_remains_so() -> None:
    """Otherwise what it has signed would be taken afterwards without the time of clients."""
    for now in (NOW, NOW + KEEPS):
        found = found_of(TRUSTED, (), now=now)
        step = next_step(found)
        assert step is not None
        assert (step.action, step.reason) == (None, UNWRITTEN)
        assert first_aid(found) is None
    assert action(found_of(TAKEN, ())) == Alter(Change.END)


def test_clients_have_their_time_whatever_was_offered_meanwhile() -> None:
    assert action(found_of(TRUSTED, OF_A)) == Alter(Change.END)
    record = changed(TRUSTED, Change.END, now=NOW)
    assert action(found_of(record, OF_B)) is None
    assert action(found_of(record, OF_B, now=NOW + HOUR)) == Alter(Change.TAKE)
    # A leaf of the former CA that is renewed in between changes nothing of that, and is not delayed.
    assert action(found_of(TRUSTED, AGAIN)) == Alter(Change.TAKE)
    record = changed(TRUSTED, Change.TAKE, now=NOW, offered=AGAIN)
    assert (record.trusted, record.issuer, record.untried) == ((A, B), "a", frozenset({"b"}))
    assert action(found_of(record, AGAIN)) == Alter(Change.END)
    record = changed(record, Change.END, now=NOW)
    assert action(found_of(record, OF_B)) is None
    assert action(found_of(record, OF_B, now=NOW + HOUR)) == Alter(Change.TAKE)


@pytest.mark.parametrize("is_accepted", [True, False])
def test_where_little_time_is_left_what_all_accept_is_taken_at_once(is_accepted: bool) -> None:
    found = found_of(TRUSTED, OF_B, now=NOW + 7.6 * DAY, obstacle="a quorum")
    if not is_accepted:
        found = replace(found, members=(*found.members[:2], member("m2", TRUSTED, loaded=(A,))))
    aid = first_aid(found)
    assert (aid is not None and aid.action == Alter(Change.TAKE)) is is_accepted


def test_what_has_expired_anyhow_is_replaced_at_once_and_members_are_restarted_without_a_quorum() -> None:
    later = NOW + 30 * DAY
    new = ca("new", since=later)
    offered = issued(new, new, since=30 * DAY)
    found = found_of(offered=offered, now=later, obstacle="a quorum")
    assert action(found) == Alter(Change.TRUST)
    record = changed(RECORD, Change.TRUST, now=later, offered=offered)
    assert action(replace(found, record=record)) == Alter(Change.TAKE)
    record = changed(record, Change.TAKE, now=later, offered=offered)
    found = replace(found, record=replace(record, since=later))
    assert action(found) == Deliver(members=("m0", "m1", "m2"))
    found = replace(found, members=tuple(member(each.name, record, loaded=(A,)) for each in found.members))
    assert action(found) == Restart(members=("m0",), is_forced=True)


@pytest.mark.parametrize(
    ("leafs", "cas", "after", "expired"),
    [
        (OF_A, (A,), 8 * DAY, ()),
        (OF_A, (A,), 10 * DAY, OF_A),
        (OF_A, (A, B), 10 * DAY, OF_A),
        (OF_A, (ca("a", life=DAY), B), 2 * DAY, OF_A),  # the CA ends first
        (issued(A, B), (ca("a", life=DAY), B), 2 * DAY, "server"),
        (issued(B, A), (ca("a", life=DAY), B), 2 * DAY, "operator"),
    ],
)
def test_a_leaf_is_of_no_use_any_more_once_it_or_its_ca_has_expired(
    leafs: tuple[IssuedLeaf, ...],
    cas: tuple[Description, ...],
    after: timedelta,
    expired: tuple[IssuedLeaf, ...] | str,
) -> None:
    record = replace(RECORD, leafs=leafs, trusted=cas)
    wanted = tuple(each for each in leafs if each.file == expired) if isinstance(expired, str) else expired
    assert record.expired(NOW + after) == wanted


def test_certificates_of_one_side_may_be_of_different_cas_for_a_while() -> None:
    record = changed(RECORD, Change.TRUST, now=NOW, offered=MIXED)
    record = changed(replace(record, since=NOW), Change.TAKE, now=NOW, offered=MIXED)
    record = changed(record, Change.END, now=NOW)
    assert (record.issuer, record.unused, set(record.trusted)) == ("a", (), {A, B})
    assert action(found_of(record, MIXED, now=NOW + DAY)) is None
    taken = found_of(record, OF_B)
    assert action(taken) == Alter(Change.TAKE)
    assert changed(record, Change.TAKE, now=NOW, offered=OF_B).unused == (A,)


def test_an_issuer_may_return_to_its_former_ca() -> None:
    """The one that signs comes behind all others: none on record is an earlier one (`Authority.is_after`)."""
    back = issued(A, A)
    assert action(found_of(STABLE_AGAIN, back)) == Alter(Change.TAKE)
    record = changed(STABLE_AGAIN, Change.TAKE, now=NOW, offered=back)
    assert (record.trusted, record.issuer) == ((B, A), "a")


def test_of_a_ca_that_is_renewed_with_its_key_the_latest_certificate_is_trusted() -> None:
    later = ca("a", since=NOW + 6 * DAY)
    both = tuple(replace(each, ca=which) for each, which in zip(RENEWED, (A, later), strict=True))
    assert action(found_of(offered=both)) == Alter(Change.TRUST)
    record = changed(RECORD, Change.TRUST, now=NOW, offered=both)
    assert (record.trusted, record.phase) == ((later,), Phase.STABLE)
    assert changed(record, Change.TRUST, now=NOW, offered=both).trusted == (later,)
    assert action(found_of(replace(record, since=NOW), both)) == Alter(Change.TAKE)


@pytest.mark.parametrize(
    ("found", "is_forgotten"),
    [
        (found_of(STABLE_AGAIN, OF_B, now=NOW + KEEPS - HOUR), False),
        (found_of(STABLE_AGAIN, OF_B, now=NOW + KEEPS), True),
        (found_of(STABLE_AGAIN, OF_B, keeps=90 * DAY, now=NOW + 20 * DAY), False),
        (found_of(replace(STABLE_AGAIN, trusted=(ca("a", life=DAY), B)), OF_B, keeps=9 * DAY), False),
    ],
)
def test_a_former_ca_is_trusted_as_long_as_clients_may_have_certificates_of_it(
    found: Situation, is_forgotten: bool
) -> None:
    assert (action(found) == Alter(Change.FORGET)) is is_forgotten
    if is_forgotten:
        assert action(replace(found, obstacle="m1 (silent)")) is None
        record = changed(found.record, Change.FORGET, now=found.now)
        assert (record.trusted, record.since) == ((B,), None)


def test_a_former_ca_that_has_expired_is_forgotten() -> None:
    short = ca("a", life=2 * DAY)
    record = replace(STABLE_AGAIN, trusted=(short, B))
    members = tuple(member(name, record) for name in ("m0", "m1"))
    found = found_of(record, OF_B, members=members, keeps=90 * DAY, now=NOW + 2 * DAY)
    assert action(found) == Alter(Change.FORGET)
    assert action(replace(found, now=NOW + DAY)) is None
    undated = replace(found, record=replace(record, since=None))
    assert action(undated) == Alter(Change.DATE)


def test_each_former_ca_is_forgotten_in_its_own_time() -> None:
    """An issuer may have another one again before that."""
    record = changed(STABLE_AGAIN, Change.TRUST, now=NOW + HOUR, offered=OF_C)
    record = changed(record, Change.TAKE, now=NOW + HOUR, offered=OF_C)
    record = changed(record, Change.END, now=NOW + HOUR)
    record = changed(record, Change.DATE, now=NOW + 2 * HOUR)
    assert record.trusted == (A, B, C)
    assert action(found_of(record, OF_C, now=NOW + KEEPS - MINUTE)) is None
    assert action(found_of(record, OF_C, now=NOW + KEEPS)) == Alter(Change.FORGET)
    record = changed(record, Change.FORGET, now=NOW + KEEPS, keeps=KEEPS)
    assert (record.trusted, record.since) == ((B, C), None)
    record = changed(record, Change.DATE, now=NOW + KEEPS)
    assert action(found_of(record, OF_C, now=NOW + KEEPS + HOUR - MINUTE)) is None
    assert action(found_of(record, OF_C, now=NOW + KEEPS + HOUR)) == Alter(Change.FORGET)
    assert changed(record, Change.FORGET, now=NOW + KEEPS + HOUR, keeps=KEEPS).trusted == (C,)


def test_a_former_ca_that_signs_again_is_former_from_when_it_is_replaced_again() -> None:
    record = changed(STABLE_AGAIN, Change.TAKE, now=NOW + HOUR, offered=OF_A)
    assert record.former == (("b", NOW + HOUR),)
    record = changed(record, Change.TAKE, now=NOW + 2 * HOUR, offered=OF_B)
    assert record.former == (("a", NOW + 2 * HOUR),)


def test_members_that_refuse_any_leaf_on_record_are_restarted_without_a_quorum() -> None:
    """As when the certificate of the operator alone has expired, and is issued by another CA."""
    record = changed(TRUSTING, Change.TAKE, now=NOW, offered=MIXED)
    assert record.issuer == "a"
    members = tuple(member(name, record, loaded=(A,)) for name in ("m0", "m1"))
    step = first_aid(found_of(record, MIXED, members=members, obstacle="a quorum"))
    assert step is not None
    assert step.action == Restart(members=("m0",), is_forced=True)


def crowded(number: int) -> Record:
    """So many CAs are trusted."""
    cas = (*(ca(f"former {each}") for each in range(number - 1)), B)
    former = tuple((each.key_id, NOW) for each in cas[:-1])
    return replace(STABLE_AGAIN, trusted=cas, former=former)


@pytest.mark.parametrize(
    ("number", "after", "is_trusted"),
    [
        (MOST_TRUSTED - 1, HOUR, True),
        (MOST_TRUSTED, HOUR, False),
        (MOST_CERTIFICATES - 1, 10 * DAY, True),  # the leafs have expired
        (MOST_CERTIFICATES, 10 * DAY, False),
    ],
)
def test_no_more_cas_are_trusted_than_can_be_read(number: int, after: timedelta, is_trusted: bool) -> None:
    found = found_of(crowded(number), OF_C, now=NOW + after, keeps=90 * DAY)
    if is_trusted:
        assert action(found) == Alter(Change.TRUST)
        return
    step = next_step(found)
    assert step is not None
    assert (step.action, step.reason) == (None, "TLSInvalid")
    assert f"has another CA, and {number} are trusted" in step.message
    assert first_aid(found) is None
    # A rotation that has begun ends, and former CAs are forgotten.
    assert action(replace(found, record=replace(found.record, phase=Phase.TRUSTING))) == Alter(Change.END)
    assert action(replace(found, keeps=HOUR)) == Alter(Change.FORGET)


RENAMED = replace(ca("a", since=NOW + DAY), subject="CN=renamed", identity="renamed")


@pytest.mark.parametrize(
    "renamed", [RENAMED, replace(RENAMED, not_after=A.not_after), replace(RENAMED, key_id="c")]
)
def test_a_ca_with_another_name_and_the_same_key_is_refused(renamed: Description) -> None:
    """A bundle has one certificate for each key, and members would refuse the leafs of one of the two."""
    offered = issued(renamed, C if renamed.key_id == "c" else A)
    found = found_of(offered=offered, now=NOW + DAY)
    step = next_step(found)
    assert step is not None
    assert (step.action, step.reason) == (None, "TLSInvalid")
    assert "CN=renamed" in step.message
    assert "have the same subject key identifier" in step.message
    assert first_aid(found) is None
    assert action(replace(found, now=NOW + 10 * DAY)) is None
    trusting = found_of(TRUSTED, (replace(OF_B[0], ca=replace(B, subject="CN=renamed", identity="renamed")),))
    assert action(trusting) == Alter(Change.END)


def test_a_bundle_counts_as_old_from_when_it_was_changed() -> None:
    """The CA in it may be years old."""
    old = ca("c", since=NOW - 9 * DAY)
    record = replace(RECORD, trusted=(A, old), changed=NOW + DAY)
    found = found_of(record, members=(member("m0", record, loaded=(A,)),), now=NOW + DAY)
    assert not reads_bundle(found, "m0")
    assert reads_bundle(replace(found, now=NOW + DAY + 2 * PATIENCE), "m0")


Event = tuple[str, int]

EVENTS: dict[str, Callable[[IssuedWorld, int], object]] = {
    "act": lambda world, _: world.act(),
    "act on former handshakes": lambda world, _: world.act(is_fresh=False),
    "act and be killed": lambda world, _: world.act(is_killed=True),
    "follow": IssuedWorld.follow,
    "start": IssuedWorld.start,
    "a little time": lambda world, number: world.pass_time(number * 20 * MINUTE),
    "add": lambda world, _: world.add_member() if len(world.members) < 5 else None,
    "remove": IssuedWorld.remove,
    "renew": lambda world, _: world.renew(),
    "renew one": lambda world, number: world.renew(("server", "operator")[number % 2 :][:1]),
    "change": lambda world, _: world.change(),
    "extend": lambda world, _: world.extend(),
    "act without knowing": lambda world, _: world.act_unknowing(),
}
OFTEN = ("act", "act", "act", "follow", "follow", "start", "a little time")
EVENT = st.tuples(st.sampled_from([*EVENTS, *OFTEN]), st.integers(min_value=0, max_value=4))


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(size=st.integers(min_value=1, max_value=4), events=st.lists(EVENT, max_size=120))
@example(size=3, events=[("change", 0), *[("act", 0), ("follow", 0), ("start", 0)] * 9, ("change", 0)])
def test_all_accept_each_other_whatever_the_issuer_does(size: int, events: list[Event]) -> None:
    world = IssuedWorld.issued(size=size)
    for number, (name, argument) in enumerate(events):
        EVENTS[name](world, argument)
        assert world.faults() == [], f"after {events[: number + 1]}"
    world.settle()
    assert world.faults() == []
    assert world.record.leafs == world.offered
    for _ in range(40):
        world.pass_time(timedelta(minutes=10))
        world.act()
    world.settle()
    assert world.record.unused == ()
    assert all(each.loaded == world.record.trusted for each in world.members.values())
    assert set(world.record.trusted) <= {A, B, C} | set(world.record.trusted)


@pytest.mark.parametrize("days", [0.0, 5.0, 10.0, 30.0, 365.0])
def test_all_accept_each_other_again_although_nobody_was_there(days: float) -> None:
    world = IssuedWorld.issued(size=3)
    world.pass_time(days * DAY)
    world.change() if days > LEAF_LIFE / DAY else world.renew()
    world.settle()
    assert world.faults() == []
    assert world.record.leafs == world.offered
