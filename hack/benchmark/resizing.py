"""How long it takes to grow, shrink and repair, compared with the same steps by hand on plain etcd.

Two clusters live side by side in each run, one kept by the operator and one by hand, and take their steps in
turn. Before each step both are left alone for as long as etcd refuses to change its members.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from statistics import median

from benchmark.bed import POLL_SECONDS, Bed, Document
from benchmark.byhand import ByHand
from benchmark.verdict import Verdict, median_of, spread
from e2e.support.api import CLUSTERS, LABELS
from e2e.support.clusters import ephemeral, persistent
from e2e.support.members import Members
from e2e.support.waiting import hold_for, wait_until
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.client import PatchKind

SETTLE_SECONDS = 6.0
"""etcd changes its members only while they have been connected for 5 s."""

RESIZES = {"1 -> 3": (3, 7.0), "3 -> 5": (5, 4.0), "5 -> 3, pods deleted": (3, 1.5)}
"""The steps in turn, from a cluster of one: the size and the budget in seconds."""

REPLACED_BUDGET = 5.0
BACK_BUDGET = 1.25
HEALED_BUDGET = 20.0
REPORTED_BUDGET = 5.0

Progress = Callable[[str], None]
Times = dict[str, tuple[list[float], list[float]]]
"""By step: seconds by hand, seconds of the operator."""


class Side:
    """One cluster of a run: its declared size, and when that is reached."""

    def __init__(self, bed: Bed, document: Document, namespace: str, *, is_operated: bool) -> None:
        self.bed = bed
        self.document = document
        self.namespace = namespace
        self.hand = None if is_operated else ByHand(bed, document, namespace)
        self._members = Members(deadline=1.0)

    def create(self) -> None:
        """Make it, and wait until it serves."""
        if self.hand is not None:
            self.hand.create()
        else:
            self.bed.create(self.document, self.namespace)
        self.until_serving(self.size)

    @property
    def size(self) -> int:
        """The size that is declared now."""
        return int(self.document["spec"][self._field])

    def resized(self, size: int) -> float:
        """Seconds until `size` members serve and no other pod is left."""
        began = time.monotonic()
        self.document = {**self.document, "spec": {**self.document["spec"], self._field: size}}
        if self.hand is not None:
            self.hand.resize(size)
        else:
            resource, key = CLUSTERS[self.document["apiVersion"]], self._key
            self.bed.api.client.patch(
                resource, key, {"spec": {self._field: size}}, dict, kind=PatchKind.MERGE
            )
        self.until_serving(size)
        return time.monotonic() - began

    def replaced(self) -> float:
        """Seconds from the deletion of the oldest member's pod until another serves in its place."""
        target = self.pods()[0]["metadata"]
        self.bed.api.client.delete(resources.PODS, Key(self.namespace, target["name"]), grace_seconds=0)
        began = time.monotonic()
        if self.hand is not None:
            self.hand.replace(target["name"])
        self.until_serving(self.size, without=target["uid"])
        return time.monotonic() - began

    def back(self) -> float:
        """Seconds from the deletion of a persistent member's pod until its next pod serves."""
        target = self.pods()[1]["metadata"]
        began = time.monotonic()
        self.bed.api.delete(resources.PODS, self.namespace, target["name"])
        self.until_serving(self.size, without=target["uid"])
        return time.monotonic() - began

    def healed(self) -> float:
        """Seconds from the loss of a claim (and its pod) until a member on another claim serves."""
        target = f"{self.document['metadata']['name']}-1"
        claim = self.bed.api.get(resources.CLAIMS, self.namespace, target) or {}
        pod = next(each for each in self.pods() if target in each["metadata"]["name"])["metadata"]
        began = time.monotonic()
        self.bed.api.delete(resources.CLAIMS, self.namespace, target)
        self.bed.api.delete(resources.PODS, self.namespace, pod["name"])

        def is_another() -> bool:
            found = self.bed.api.get(resources.CLAIMS, self.namespace, target)
            return found is not None and found["metadata"]["uid"] != claim["metadata"]["uid"]

        wait_until(is_another, f"{target} has another claim", within=120, every=POLL_SECONDS)
        self.until_serving(self.size, without=pod["uid"])
        return time.monotonic() - began

    def until_serving(self, size: int, *, without: str = "") -> None:
        """Wait until `size` members serve and no pod but theirs exists.

        without: a pod's UID that must not be among them; then pods that are going are not waited for.
        """

        def is_reached() -> bool:
            pods = self.pods()
            living = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
            if without and any(pod["metadata"]["uid"] == without for pod in living):
                return False
            return bool(without or len(pods) == size) and self._members.all_serve(living, size)

        wait_until(is_reached, f"{size} members of {self.namespace} serve", within=120, every=POLL_SECONDS)

    def pods(self) -> list[Document]:
        """All its pods, also those that are going."""
        selector = f"{LABELS[self.document['apiVersion']]}={self.document['metadata']['name']}"
        return self.bed.api.all_of(resources.PODS, self.namespace, selector)

    @property
    def _field(self) -> str:
        return "size" if "size" in self.document["spec"] else "replicas"

    @property
    def _key(self) -> Key:
        return Key(self.namespace, self.document["metadata"]["name"])


def ephemeral_members(bed: Bed, runs: int, progress: Progress) -> Iterator[Verdict]:
    """coreos.com: resizes, and a dead member replaced."""
    times = _runs(bed, runs, progress, ephemeral("bench", size=1), {"a dead member replaced": Side.replaced})
    yield from _resizes("coreos.com", times)
    yield from _verdicts("coreos.com", "a dead member replaced", times, at_most=REPLACED_BUDGET)


def persistent_members(bed: Bed, runs: int, progress: Progress) -> Iterator[Verdict]:
    """etcd.improbable.io: resizes, a pod that comes back, a claim that does not."""
    group, back = "etcd.improbable.io", "a deleted pod is back"
    healed: list[float] = []

    def lost_claim(side: Side) -> None:
        healed.append(side.healed())

    times = _runs(
        bed, runs, progress, persistent("bench", replicas=1), {back: Side.back}, at_the_end=lost_claim
    )
    yield from _resizes(group, times)
    yield from _verdicts(group, back, times)
    ratio = median(times[back][1]) / median(times[back][0])
    yield Verdict(name=f"{group}: {back}, operator / by hand", value=ratio, at_most=BACK_BUDGET)
    yield median_of(f"{group}: a lost claim healed", healed, at_most=HEALED_BUDGET)


def quorum_reported(bed: Bed, runs: int, progress: Progress) -> Iterator[Verdict]:
    """How long the status still reports a quorum after two of three members hang."""
    seconds = []
    with bed.namespace() as namespace:
        side = Side(bed, ephemeral("bench"), namespace, is_operated=True)
        side.create()
        bed.until_available(side.document, namespace, "True")
        for run in range(runs):
            _settle()
            pods = [f"{namespace}/{pod['metadata']['name']}" for pod in side.pods()[:2]]
            try:
                bed.testbed.fault("freeze", pods[0])
                began = time.monotonic()
                bed.testbed.fault("freeze", pods[1])
                bed.until_available(side.document, namespace, "False")
                seconds.append(time.monotonic() - began)
            finally:
                for pod in pods:
                    bed.testbed.fault("thaw", pod)
            bed.until_available(side.document, namespace, "True")
            progress(f"run {run + 1}: a lost quorum is reported after {seconds[-1]:.2f} s")
    yield Verdict(
        name="a lost quorum is reported, longest",
        value=max(seconds),
        unit="s",
        at_most=REPORTED_BUDGET,
        note=spread(seconds),
    )


def _runs(
    bed: Bed,
    runs: int,
    progress: Progress,
    document: Document,
    faults: dict[str, Callable[[Side], float]],
    *,
    at_the_end: Callable[[Side], None] | None = None,
) -> Times:
    times: Times = {step: ([], []) for step in (*RESIZES, *faults)}
    for run in range(runs):
        with ExitStack() as stack:
            sides = [
                Side(bed, document, stack.enter_context(bed.namespace()), is_operated=is_operated)
                for is_operated in (False, True)
            ]
            for side in sides:
                side.create()
            steps: dict[str, Callable[[Side], float]] = {
                step: lambda side, size=size: side.resized(size)  # type: ignore[misc]
                for step, (size, _) in RESIZES.items()
            }
            for step, measure in {**steps, **faults}.items():
                _settle()
                for side, kept in zip(sides, times[step], strict=True):
                    kept.append(measure(side))
                bare, ours = (kept[-1] for kept in times[step])
                progress(f"run {run + 1}: {step}: by hand {bare:.2f} s, operator {ours:.2f} s")
            if at_the_end is not None:
                _settle()
                at_the_end(sides[1])
    return times


def _resizes(group: str, times: Times) -> Iterator[Verdict]:
    for step, (_, budget) in RESIZES.items():
        yield from _verdicts(group, step, times, at_most=budget)


def _verdicts(group: str, step: str, times: Times, at_most: float | None = None) -> Iterator[Verdict]:
    bare, ours = times[step]
    yield median_of(f"{group}: {step}: by hand", bare)
    yield median_of(f"{group}: {step}: operator", ours, at_most=at_most)


def _settle() -> None:
    hold_for(SETTLE_SECONDS, lambda: True, "the members stay connected", every=0.5)
