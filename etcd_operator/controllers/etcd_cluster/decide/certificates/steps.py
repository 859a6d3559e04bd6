"""The next step for the certificates of one CA of a cluster.

The record changes; the published bundle, the Secrets and the processes of members follow it, in this order:
the bundle is published, Secrets get a bundle and a leaf of the issuer, one member at a time, each proven by a
handshake that shows the new leaf; members that were started with another bundle are started again, one at a
time. Only when all of them have followed, and clients have had time to, does a rotation go on.

Where nothing is left to lose, because the members refuse each other already, nothing is waited for.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import assert_never

from etcd_operator.controllers.etcd_cluster.decide.certificates import facts, issuers
from etcd_operator.controllers.etcd_cluster.decide.certificates.changes import Change
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import Phase, Situation
from etcd_operator.controllers.shared.decide.holds import TLS_INVALID
from etcd_operator.formats import duration_text, timestamp
from etcd_operator.pki import lifetimes

MOST_OFFSET = timedelta(minutes=2)
"""Of the operator's clock: less than the time by which new certificates are back-dated (`BACKDATING`)."""


@dataclass(frozen=True, slots=True)
class Alter:
    """Write the record, with the CAs that the change makes."""

    change: Change


@dataclass(frozen=True, slots=True)
class Publish:
    """Write the bundle where clients find it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliver:
    """Write leafs of the issuer, and the bundle, to the Secrets of these members and clients."""

    members: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """These members are to be started again, one at a time.

    is_forced: the members refuse each other, so the next one is started again once the one before runs,
    whether it is healthy or not.
    """

    members: tuple[str, ...]
    is_forced: bool = False


UNWRITTEN = "TLSUnwritable"
"""The reason of a step that waits until an object can be written, or read: why it cannot is reported."""

Action = Alter | Publish | Deliver | Restart


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What is done next, or waited for."""

    message: str
    action: Action | None = None
    reason: str = "TLSRotating"


def next_step(found: Situation) -> Step | None:
    """The next step; None if nothing is to be done."""
    return next((step for rule in _RULES if (step := rule(found)) is not None), None)


def first_aid(found: Situation) -> Step | None:
    """What is done at once, whatever else is wrong: it needs no quorum, and may bring one back.

    Clients that find no bundle, as somebody else's object has its name, hold up no renewal of a leaf.
    """
    rules = (_check_clock, _switch_in_emergency, _renew, _deliver_members, _restart_cut_off)
    step = next((step for rule in rules if (step := rule(found)) is not None), None)
    return step if step is not None and step.action is not None else None


def for_clients(found: Situation) -> Step | None:
    """What clients need, before anything is changed that they have to follow."""
    if not found.issuer_is_valid or _check_clock(found) is not None:
        return None
    step = _publish(found)
    return step if step is not None and step.action is not None else _deliver(replace(found, members=()))


def clock_problem(offset: timedelta) -> str:
    """Why none is issued with a clock that is so far from that of the API server; empty if any is."""
    if abs(offset) <= MOST_OFFSET:
        return ""
    off = duration_text(int(abs(offset).total_seconds()))
    return f"the operator's clock is off by {off}: no certificate is issued until it is set"


def _check_clock(found: Situation) -> Step | None:
    problem = clock_problem(found.offset)
    return Step(reason="ClockSkew", message=problem) if problem else None


def _switch_in_emergency(found: Situation) -> Step | None:
    """The issuer has expired in members that have loaded the next CA: its leafs are accepted."""
    following = found.record.next
    if following is None or found.record.leafs or not facts.cut_off(found):
        return None
    running = [member for member in found.members if member.is_running]
    if not all(facts.accepts(member.loaded, following.key_id, found.now) for member in running):
        return None
    return Step(
        action=Alter(Change.SWITCH),
        message="the CA has expired in members, which trust the next one: it signs from now on",
    )


def _renew(found: Situation) -> Step | None:
    """All CAs at once: that costs one roll. cert-manager renews its own, and its leafs."""
    if found.record.leafs:
        change = issuers.at_once(found)
        message = "what cert-manager has issued is followed"
        return Step(action=Alter(change), message=message) if change is not None else None
    due = [
        ca
        for ca in found.record.trusted
        if lifetimes.is_due(ca, found.now, found.lasts) or not ca.is_valid(found.now)
    ]
    if not due:
        return None
    end = min(ca.not_after for ca in due)
    return Step(
        action=Alter(Change.RENEW),
        message=f"a CA ends at {timestamp(end)}: it is renewed with its own key",
    )


def _publish(found: Situation) -> Step | None:
    if found.published is None or facts.prints(found.published) == facts.prints(found.record.trusted):
        return None
    if found.is_unpublished:
        return Step(reason=UNWRITTEN, message="the bundle of CAs for clients cannot be published")
    return Step(action=Publish(), message="the published bundle is brought up to date")


def _date(found: Situation) -> Step | None:
    """The time of clients begins after the publication, and again if the clock was ahead at that time."""
    since = found.record.since
    if since is not None and since - found.now <= MOST_OFFSET:
        return None
    return Step(action=Alter(Change.DATE), message="clients can load the bundle from now on")


def _deliver(found: Situation) -> Step | None:
    """Files that are refused anyhow are replaced at once, others one by one, each proven before the next."""
    due = [member for member in found.members if facts.lacks_files(found, member)]
    due = [member for member in due if member.name not in found.unwritten]
    clients = tuple(client.name for client in found.clients if facts.lacks_leaf(found, client))
    clients = tuple(name for name in clients if name not in found.unwritten)
    urgent = [member for member in due if not member.is_running or facts.is_urgent(found, member)]
    unproven = [member for member in facts.unproven(found) if member not in due]
    if found.record.phase is not Phase.REISSUING:
        unproven = [member for member in unproven if not facts.is_overdue(found, member)]
    chosen = urgent or facts.unchanged(found, due) or ([] if unproven else due[:1])
    if not chosen and not clients:
        return None
    names = tuple(member.name for member in chosen)
    return Step(
        action=Deliver(members=names, clients=clients),
        message=f"new certificates for {', '.join([*names, *clients])}",
    )


def _deliver_members(found: Situation) -> Step | None:
    """Before the bundle is published, only what has nothing to lose."""
    step = _deliver(replace(found, clients=()))
    if step is None or found.record.since is not None:
        return step
    names = step.action.members if isinstance(step.action, Deliver) else ()
    by_name = {member.name: member for member in found.members}
    is_lost = all(not by_name[n].is_running or facts.is_urgent(found, by_name[n]) for n in names)
    return step if is_lost else None


def _restart_cut_off(found: Situation) -> Step | None:
    """Once the files of all are written, and those that run present them."""
    if not facts.cut_off(found) or any(facts.lacks_files(found, member) for member in found.members):
        return None
    return _restart(found) if not facts.unproven(found) else None


def _await_writes(found: Situation) -> Step | None:
    """A rotation does not go on without a Secret that cannot be written; nothing else waits for it."""
    if not found.unwritten:
        return None
    names = ", ".join(sorted(found.unwritten))
    return Step(reason=UNWRITTEN, message=f"the Secrets with the certificates of {names} cannot be written")


def _prove(found: Situation) -> Step | None:
    unproven = facts.unproven(found)
    if not unproven:
        return None
    names = ", ".join(member.name for member in unproven)
    late = [member.name for member in unproven if member.presented and facts.is_overdue(found, member)]
    if late:
        return Step(
            reason=TLS_INVALID,
            message=f"{', '.join(late)}: the certificate in the Secret is not the one that is presented: see "
            "the Events of the pod, and whether its volume follows the Secret",
        )
    return Step(message=f"waiting for {names} to present the new certificate")


def _restart(found: Situation) -> Step | None:
    """Members that accept no leaf of the issuer first, without a quorum: they cannot reach the others."""
    away = facts.stopped(found)
    lost, outdated = facts.cut_off(found), facts.outdated(found)
    if lost:
        if away:
            missing = ", ".join(member.name for member in away)
            return Step(message=f"waiting for {missing} to run: the members refuse each other's certificates")
        return Step(
            action=Restart(members=(lost[0].name,), is_forced=True),
            message=f"{lost[0].name} trusts no valid CA: starting it again; the cluster serves when a quorum "
            "has been",
        )
    if not outdated:
        return None
    if found.obstacle:
        return Step(message=f"before members load the CAs again: waiting for {found.obstacle}")
    names = tuple(member.name for member in outdated)
    return Step(action=Restart(members=names), message=f"{', '.join(names)}: to load the CAs again")


def _advance(found: Situation) -> Step | None:
    """The next phase, once all have followed this one."""
    record = found.record
    if record.leafs:
        return _follow(found)
    match record.phase:
        case Phase.STABLE:
            if not found.request or found.request == record.request:
                return None
            return _alter(found, Change.BEGIN, "the rotation of the CA begins")
        case Phase.TRUSTING:
            return _alter(found, Change.SWITCH, "the next CA signs, which all trust", waits=True)
        case Phase.REISSUING:
            return _alter(found, Change.SETTLE, "no leaf of the old CA is left")
        case Phase.DROPPING:
            if record.has_old:
                return _alter(found, Change.DROP, "the old CA is no longer trusted", waits=True)
            return _alter(found, Change.END, "the rotation of the CA is over")
        case _:
            assert_never(record.phase)


def _follow(found: Situation) -> Step | None:
    """The same, for a CA of cert-manager."""
    following = issuers.following(found)
    if following is not None:
        return _alter(found, following.change, following.message, waits=following.waits)
    if found.record.phase is not Phase.STABLE:
        return Step(reason=UNWRITTEN, message="what cert-manager has issued by now is not known")
    refusal = issuers.refusal(found)
    return Step(reason=TLS_INVALID, message=refusal) if refusal else None


def _alter(found: Situation, change: Change, message: str, *, waits: bool = False) -> Step:
    """A change, once the cluster is healthy, and once clients have had their time if it `waits` for them."""
    away = ", ".join(member.name for member in facts.stopped(found))
    obstacle = found.obstacle or (f"{away} (not running)" if away else "")
    if obstacle:
        return Step(message=f"waiting for {obstacle}; then {message}")
    end = (found.record.since or found.now) + found.grace
    if waits and found.now < end:
        return Step(message=f"clients have until {timestamp(end)} to load certificates; then {message}")
    return Step(action=Alter(change), message=message)


_RULES: Iterable[Callable[[Situation], Step | None]] = (
    _check_clock,
    _switch_in_emergency,
    _renew,
    _publish,
    _date,
    _deliver,
    _await_writes,
    _prove,
    _restart,
    _advance,
)
