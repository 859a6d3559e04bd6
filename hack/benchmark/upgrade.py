"""What a rolling upgrade costs its clients, against the same roll by hand with a leader that is killed.

The operator takes one cluster along a whole path of versions. By hand each hop has a cluster of its own,
bootstrapped at the hop's first version: data that 3.5 wrote must be prepared before 3.7 reads it, which the
operator does, and a change of images alone does not.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise

from benchmark import floor, roll_by_hand
from benchmark.bed import Bed, Document
from benchmark.goals import Hop, row, verdicts
from benchmark.rolling import Roll, measured, until_serving_at
from benchmark.verdict import Verdict
from e2e.support.api import CLUSTERS
from e2e.support.clusters import ephemeral, persistent
from e2e.support.dump import dump
from etcd_operator.errors import OperatorError
from etcd_operator.keys import Key
from etcd_operator.kube.client import PatchKind

Progress = Callable[[str], None]
Part = Callable[[Bed, int, Progress], Iterator[Verdict]]

PATHS = {"patch": ("3.5.34", "3.5.35"), "minor": ("3.5.35", "3.6.16", "3.7.3")}
SIZES = (1, 3, 5)
GROUPS: dict[str, Callable[..., Document]] = {"coreos.com": ephemeral, "etcd.improbable.io": persistent}

LIMIT_PER_MEMBER = 60.0
"""Seconds after which a roll of the operator counts as blocked; on a busy machine, too."""


def parts(sizes: Sequence[int], groups: Sequence[str], watches: int = 0) -> dict[str, Part]:
    """The parts of `upgrade` by name; watches: streams of watching clients on each member."""
    return {name: partial(_along, path, sizes, groups, watches) for name, path in PATHS.items()}


def _along(
    path: tuple[str, ...],
    sizes: Sequence[int],
    groups: Sequence[str],
    watches: int,
    bed: Bed,
    runs: int,
    progress: Progress,
) -> Iterator[Verdict]:
    for group in groups:
        for size in sizes:
            hops = [
                Hop(group=group, size=size, before=old, after=new, watches=watches)
                for old, new in pairwise(path)
            ]
            ours: dict[Hop, list[Roll]] = {hop: [] for hop in hops}
            bare: dict[Hop, list[Roll]] = {hop: [] for hop in hops}
            failed: dict[Hop, list[str]] = {hop: [] for hop in hops}
            for run in range(runs):
                for hop in hops:
                    bare[hop].append(_roll_by_hand(bed, hop))
                    progress(f"run {run + 1} by hand  {row(hop, bare[hop][-1:])}")
                for hop, result in _rolls_by_operator(bed, hops):
                    if isinstance(result, Roll):
                        ours[hop].append(result)
                    else:
                        failed[hop].append(result)
                    progress(f"run {run + 1} operator {row(hop, ours[hop][-1:])} {''.join(failed[hop][-1:])}")
            for hop in hops:
                yield from verdicts(hop, ours[hop], bare[hop], failed=failed[hop])


def _document(hop: Hop, version: str) -> Document:
    field = "size" if GROUPS[hop.group] is ephemeral else "replicas"
    return GROUPS[hop.group](name="bench", version=version, **{field: hop.size})


def _roll_by_hand(bed: Bed, hop: Hop) -> Roll:
    with bed.namespace() as namespace:
        before, after = _document(hop, hop.before), _document(hop, hop.after)
        floor.create(bed.api, floor.objects_of(before, namespace), namespace)
        bed.until_serving(before, namespace, since=time.monotonic())
        by_hand = partial(roll_by_hand.roll, bed, after, namespace)
        return measured(bed, after, namespace, by_hand, watches=hop.watches)


def _rolls_by_operator(bed: Bed, hops: Sequence[Hop]) -> Iterator[tuple[Hop, Roll | str]]:
    """One cluster from hop to hop; ends with the first roll that does not, and why."""
    with bed.namespace() as namespace:
        document = _document(hops[0], hops[0].before)
        bed.create(document, namespace)
        bed.until_serving(document, namespace, since=time.monotonic())
        bed.until_settled(document, namespace, limit=60)
        for hop in hops:
            document = _document(hop, hop.after)
            try:
                edit = partial(_edit, bed, hop, document, namespace)
                yield hop, measured(bed, document, namespace, edit, watches=hop.watches)
            except (AssertionError, OperatorError) as error:
                folder = dump(bed.space(namespace), "upgrade")
                yield hop, f"{str(error).splitlines()[0]} (see {folder})"
                return


def _edit(bed: Bed, hop: Hop, document: Document, namespace: str) -> float:
    """Edit the version; the seconds until all members serve at it and the status reports so."""
    began, limit = time.monotonic(), LIMIT_PER_MEMBER * hop.size
    resource, key = CLUSTERS[document["apiVersion"]], Key(namespace, document["metadata"]["name"])
    bed.api.client.patch(resource, key, {"spec": {"version": hop.after}}, dict, kind=PatchKind.MERGE)
    until_serving_at(bed, document, namespace, hop.after, members=frozenset(), limit=limit)
    bed.until_settled(document, namespace, limit=limit)
    return time.monotonic() - began
