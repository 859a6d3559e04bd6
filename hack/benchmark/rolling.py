"""One roll of a cluster's members to another version: what clients feel of it and what it must keep."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmark.bed import Bed, Document
from e2e.support.checks import assert_consistent
from e2e.support.clusters import COREOS, size_of
from e2e.support.intervals import Interval
from e2e.support.leaders import LeaderWatch
from e2e.support.members import Members
from e2e.support.steady import SteadyWriter
from e2e.support.streams import Streams
from e2e.support.waiting import hold_for, wait_until
from etcd_operator.kube import resources

PUTS_PER_SECOND = 100.0

POLL_SECONDS = 0.05
"""Seconds between two polls for the end of a roll: each poll costs the members time."""

REST_BEFORE = 4.0
REST_AFTER = 2.0
"""Seconds in which nothing happens to the cluster: what its clients feel then is the machine's noise."""


@dataclass(frozen=True, kw_only=True)
class Roll:
    """What one roll cost. Times in seconds."""

    seconds: float
    """As the roll itself counts."""
    puts: int
    """Acknowledged during the roll."""
    failures: Counter[str]
    """Failed during the roll, by reason."""
    longest_gap: float
    gap_at_rest: float
    """The longest gap of the same writer right before and right after."""
    leaderless: tuple[float, ...]
    """The length of each window."""
    blind: float
    """The longest time in which the leader watch got no answer."""
    lost: tuple[str, ...]
    """Acknowledged writes that are not there."""
    changed: tuple[str, ...]
    """Identities that are not what they were."""
    inconsistency: str
    """Why the members are no longer one consistent cluster; empty if they are."""


def measured(
    bed: Bed, document: Document, namespace: str, roll: Callable[[], float], *, watches: int = 0
) -> Roll:
    """Run `roll`, which returns its seconds, on a serving cluster under a writing client.

    watches: streams of watching clients on each member.
    """

    def addresses() -> list[str]:
        pods = bed.api.member_pods(document, namespace)
        return [pod["status"]["podIP"] for pod in pods if pod.get("status", {}).get("podIP")]

    size = size_of(document)
    before = identities(bed, document, namespace)
    prefix = f"roll-{time.monotonic_ns()}"
    with (
        LeaderWatch(addresses, voters=size) as leaders,
        Streams(addresses, per_member=watches) as streams,
        SteadyWriter(addresses, per_second=PUTS_PER_SECOND, prefix=prefix) as writer,
    ):
        wait_until(lambda: writer.acknowledged() > 0, "the first put is acknowledged", within=30)
        wait_until(lambda: streams.confirmed() == size * watches, "each member is watched", within=30)
        rest = _rest(REST_BEFORE)
        began = time.monotonic()
        seconds = roll()
        during = Interval(began, time.monotonic())
        after = _rest(REST_AFTER)
    return Roll(
        seconds=seconds,
        puts=writer.acknowledged(during),
        failures=writer.failures(during),
        longest_gap=writer.longest_gap(during),
        gap_at_rest=max(writer.longest_gap(rest), writer.longest_gap(after)),
        leaderless=tuple(window.length for window in leaders.windows(during)),
        blind=leaders.longest_silence(during),
        lost=tuple(writer.lost()),
        changed=differing(before, identities(bed, document, namespace)),
        inconsistency=_inconsistency(bed, document, namespace),
    )


def until_serving_at(
    bed: Bed, document: Document, namespace: str, version: str, *, members: frozenset[str], limit: float
) -> None:
    """Wait until all members serve and the pods in `members` (none: all) run `version`."""
    size = size_of(document)

    def is_there() -> bool:
        pods = bed.api.member_pods(document, namespace)
        reports = polled.reports(pods)
        wanted = [each for each in reports if not members or each.name in members]
        return (
            len(reports) == size
            and all(each.status.version == version for each in wanted)
            and polled.all_serve(pods, size)
        )

    with Members(deadline=1.0) as polled:
        expected = f"{', '.join(sorted(members)) or 'all'} of {namespace} at {version}, {size} members serve"
        wait_until(is_there, expected, within=limit, every=POLL_SECONDS)


def identities(bed: Bed, document: Document, namespace: str) -> dict[str, str]:
    """What a roll leaves alone: IDs of etcd, volumes, and pods that are changed in place."""
    pods = bed.api.member_pods(document, namespace)
    with Members() as members:
        reports = wait_until(lambda: members.reports(pods), f"a member of {namespace} answers", within=10)
    found = {"cluster ID": reports[0].members.cluster_id}
    found |= {f"ID of {member.name}": member.id for member in reports[0].members.members}
    kept = pods if document["apiVersion"] == COREOS else bed.api.all_of(resources.CLAIMS, namespace)
    return found | {f"UID of {each['metadata']['name']}": each["metadata"]["uid"] for each in kept}


def differing(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """The names whose value is another one, or on one side only."""
    names = before.keys() | after.keys()
    return tuple(sorted(name for name in names if before.get(name) != after.get(name)))


def _inconsistency(bed: Bed, document: Document, namespace: str) -> str:
    try:
        assert_consistent(bed.space(namespace), document)
    except AssertionError as error:
        return str(error).splitlines()[0]
    return ""


def _rest(seconds: float) -> Interval:
    began = time.monotonic()
    hold_for(seconds, lambda: True, "the cluster rests")
    return Interval(began, time.monotonic())
