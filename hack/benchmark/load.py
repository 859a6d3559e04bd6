"""Many clusters: what it costs to create them at once, and what they cost at rest."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from benchmark.bed import Bed, Document
from benchmark.verdict import Verdict
from e2e.support.audit import Request, Window, tally, wait_quiet
from e2e.support.clusters import ephemeral, persistent
from e2e.support.waiting import hold_for

AT_ONCE = 20
AT_REST = 10
REST_SECONDS = 120.0
WRITES_PER_OBJECT = 2.0
CPU_PERCENT = 1.0
MEMORY_MIB = 100.0


@dataclass(frozen=True)
class Usage:
    """What the operator's process has used by now."""

    cpu_seconds: float
    memory_mib: float

    @classmethod
    def of(cls, bed: Bed) -> "Usage":
        """Read it from the operator's metrics."""
        return cls(
            cpu_seconds=bed.operator.metric("process_cpu_seconds_total"),
            memory_mib=bed.operator.metric("process_resident_memory_bytes") / 2**20,
        )


def many_at_once(bed: Bed, _runs: int, progress: Callable[[str], None]) -> Iterator[Verdict]:
    """(c): 20 clusters of 3 created at once."""
    documents = [ephemeral(f"bench-{number}") for number in range(AT_ONCE)]
    with bed.namespace() as namespace:
        window, before, began = (
            Window(bed.testbed.audit_log, bed.operator.user),
            Usage.of(bed),
            time.monotonic(),
        )
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda document: bed.create(document, namespace), documents))
            # A list, so that the first that fails is raised.
            seconds = list(
                pool.map(
                    lambda document: bed.until_serving(document, namespace, since=began, limit=300), documents
                )
            )
        _settle(bed, documents, namespace)
        after, writes = Usage.of(bed), window.writes(namespace=namespace)
    yield Verdict(name=f"{AT_ONCE} clusters at once: all serve after", value=max(seconds), unit="s")
    yield Verdict(
        name=f"{AT_ONCE} clusters at once: CPU", value=after.cpu_seconds - before.cpu_seconds, unit="s"
    )
    yield Verdict(
        name=f"{AT_ONCE} clusters at once: memory", value=after.memory_mib, unit="MiB", at_most=MEMORY_MIB
    )
    progress(f"writes for {AT_ONCE} clusters: {tally(writes)}")
    yield from _write_verdicts("coreos.com", writes, AT_ONCE)
    yield from _writes_of_one_persistent(bed, progress)


def _writes_of_one_persistent(bed: Bed, progress: Callable[[str], None]) -> Iterator[Verdict]:
    document = persistent("bench")
    with bed.namespace() as namespace:
        window = Window(bed.testbed.audit_log, bed.operator.user)
        bed.create(document, namespace)
        bed.until_serving(document, namespace, since=time.monotonic())
        _settle(bed, [document], namespace)
        writes = window.writes(namespace=namespace)
    progress(f"writes for one persistent cluster: {tally(writes)}")
    yield from _write_verdicts("etcd.improbable.io", writes, 1)


def _write_verdicts(group: str, writes: list[Request], clusters: int) -> Iterator[Verdict]:
    made = sum(request.verb == "create" and request.code == 201 for request in writes)
    ratio = len(writes) / made if made else float("inf")
    note = f"{len(writes) / clusters:.1f} writes for {made / clusters:.1f} objects per cluster, Events apart"
    yield Verdict(name=f"{group}: writes / objects made", value=ratio, at_most=WRITES_PER_OBJECT, note=note)


@dataclass(frozen=True)
class Rest:
    """What the operator did while clusters rested."""

    seconds: float
    cpu_percent: float  # of one core
    memory_mib: float
    writes: list[Request]
    events: list[Request]
    lists: list[Request]
    leases: list[Request]


def at_rest(bed: Bed, _runs: int, progress: Callable[[str], None]) -> Iterator[Verdict]:
    """(e): ten settled clusters, half of each group, for two minutes."""
    found = rest_of(bed, progress)
    rest = f"{AT_REST} clusters at rest, {found.seconds:.0f} s"
    yield Verdict(name=f"{rest}: API writes", value=len(found.writes) + len(found.events), at_most=0)
    yield Verdict(name=f"{rest}: LISTs", value=len(found.lists), at_most=0)
    yield Verdict(
        name=f"{rest}: renewals of the leader's Lease",
        value=len(found.leases),
        note="leader election's own",
    )
    yield Verdict(name=f"{rest}: CPU", value=found.cpu_percent, unit="% core", at_most=CPU_PERCENT)
    yield Verdict(name=f"{rest}: memory", value=found.memory_mib, unit="MiB", at_most=MEMORY_MIB)


def rest_of(bed: Bed, progress: Callable[[str], None], **spec: Any) -> Rest:
    """Create ten clusters, half of each group, with these fields in their specs, and let them rest."""
    documents = [ephemeral(f"bench-e{number}", **spec) for number in range(AT_REST // 2)]
    documents += [persistent(f"bench-p{number}", **spec) for number in range(AT_REST // 2)]
    with bed.namespace() as namespace:
        for document in documents:
            bed.create(document, namespace)
        for document in documents:
            bed.until_serving(document, namespace, since=time.monotonic(), limit=300)
        _settle(bed, documents, namespace)
        window, before, began = (
            Window(bed.testbed.audit_log, bed.operator.user),
            Usage.of(bed),
            time.monotonic(),
        )
        hold_for(REST_SECONDS, lambda: True, "the clusters rest", every=1.0)
        after, seconds = Usage.of(bed), time.monotonic() - began
        requests = [each for each in window.requests() if each.is_write]
        found = Rest(
            seconds=seconds,
            cpu_percent=100 * (after.cpu_seconds - before.cpu_seconds) / seconds,
            memory_mib=after.memory_mib,
            writes=window.writes(),
            events=[each for each in requests if each.resource == "events"],
            lists=window.lists(),
            leases=[each for each in requests if each.resource == "leases"],
        )
    progress(
        f"at rest: writes {tally(found.writes)}; lists {tally(found.lists)}; lease {tally(found.leases)}"
    )
    return found


def _settle(bed: Bed, documents: list[Document], namespace: str) -> None:
    """Wait until every status reports that nothing is under way, and the last writes are logged."""
    for document in documents:
        bed.until_settled(document, namespace, limit=120)
    wait_quiet(Window(bed.testbed.audit_log, bed.operator.user), every=3.0)
