"""How long a cluster takes from its creation to three healthy voters, against the floor.

Each trial has a namespace of its own that is emptied before the next begins. Both sides alternate, so that
whatever else the machine does hits both.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from statistics import median

from benchmark import floor
from benchmark.bed import Bed, Document
from benchmark.verdict import Verdict, median_of, spread
from e2e.support.clusters import ephemeral, persistent

RATIO_BUDGET = 1.25
FROZEN_BUDGET = 1.5

DOCUMENTS: dict[str, Callable[..., Document]] = {
    "coreos.com": partial(ephemeral, "bench"),
    "etcd.improbable.io": partial(persistent, "bench"),
}


def against_floor(bed: Bed, runs: int, progress: Callable[[str], None]) -> Iterator[Verdict]:
    """(a) and (b): the floor and the operator."""
    for group, document in DOCUMENTS.items():
        bare, ours = [], []
        for run in range(runs):
            bare.append(_floor_seconds(bed, document()))
            ours.append(operator_seconds(bed, document()))
            progress(f"{group} run {run + 1}: floor {bare[-1]:.2f} s, operator {ours[-1]:.2f} s")
        yield median_of(f"{group}: floor", bare)
        yield median_of(f"{group}: operator", ours)
        ratio = median(ours) / median(bare)
        yield Verdict(name=f"{group}: operator / floor", value=ratio, at_most=RATIO_BUDGET)


def beside_frozen(bed: Bed, runs: int, progress: Callable[[str], None]) -> Iterator[Verdict]:
    """(d): the same while all members of another cluster hang."""
    for group, document in DOCUMENTS.items():
        normal = [operator_seconds(bed, document()) for _ in range(runs)]
        with _frozen_cluster(bed, document()):
            hampered = [operator_seconds(bed, document()) for _ in range(runs)]
        progress(f"{group}: normal {spread(normal)}, beside a frozen cluster {spread(hampered)}")
        ratio = median(hampered) / median(normal)
        yield Verdict(name=f"{group}: beside a frozen cluster / normal", value=ratio, at_most=FROZEN_BUDGET)


def _floor_seconds(bed: Bed, document: Document) -> float:
    with bed.namespace() as namespace:
        objects = floor.objects_of(document, namespace)
        began = time.monotonic()
        floor.create(bed.api, objects, namespace)
        return bed.until_serving(document, namespace, since=began)


def operator_seconds(bed: Bed, document: Document) -> float:
    """From the creation of a cluster's resource until all its members serve."""
    with bed.namespace() as namespace:
        began = time.monotonic()
        bed.create(document, namespace)
        return bed.until_serving(document, namespace, since=began)


@contextmanager
def _frozen_cluster(bed: Bed, document: Document) -> Iterator[None]:
    with bed.namespace() as namespace:
        bed.create(document, namespace)
        bed.until_serving(document, namespace, since=time.monotonic())
        pods = [pod["metadata"]["name"] for pod in bed.api.member_pods(document, namespace)]
        for pod in pods:
            bed.testbed.fault("freeze", f"{namespace}/{pod}")
        try:
            bed.until_available(document, namespace, "False")
            yield
        finally:
            for pod in pods:
                bed.testbed.fault("thaw", f"{namespace}/{pod}")
