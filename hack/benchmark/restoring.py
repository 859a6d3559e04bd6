"""How long restores take beside the same work by hand, and how soon a cluster that lost its majority serves.

The backup is made once for each size, from an etcd of this machine. Each trial has a namespace of its own and
a claim with that backup; an EtcdRestore and the same work by hand alternate, so that whatever else the
machine does affects both.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

from benchmark import restored_by_hand
from benchmark.bed import POLL_SECONDS, Bed, Document
from benchmark.member import member
from benchmark.verdict import Verdict, median_of
from e2e.support.clusters import ephemeral, persistent
from e2e.support.members import Members
from e2e.support.status import condition
from e2e.support.volumes import claim_folder
from e2e.support.waiting import wait_until
from etcd_operator.api.restores import API_VERSION, KIND
from etcd_operator.kube import resources
from etcd_operator.kube.resources import Resource
from workflow.entry import ROOT

MIB = 1 << 20
SMALL_MIB = 2
LARGE_MIB = 256
"""By default; the budget is for 2048, which needs some 20 GiB of disk."""

MEMBERS = 3
SMALL_RATIO = 1.5
SMALL_SECONDS = 15.0
LARGE_RATIO = 1.25
LOST_SECONDS = 10.0
LIMIT = 900.0

NAME = "bench"
CLAIM = "backups"
FILE = "one.db"

VOLUMES = Resource(
    group="", version="v1", plural="persistentvolumes", kind="PersistentVolume", namespaced=False
)

Progress = Callable[[str], None]
Part = Callable[[Bed, int, Progress], Iterator[Verdict]]


@dataclass(slots=True)
class Timeline:
    """When each reason of the condition Complete was first seen, in seconds since `began`."""

    began: float
    seen: dict[str, float] = field(default_factory=dict)

    def note(self, reason: str, now: float) -> None:
        """See a reason. now: monotonic."""
        self.seen.setdefault(reason, now - self.began)

    def text(self) -> str:
        """For people: what began when."""
        return ", ".join(f"{reason} {at:.1f}" for reason, at in self.seen.items())


def parts(large_mib: int = LARGE_MIB) -> dict[str, Part]:
    """The parts of `restore` by name."""
    return {"small": small, "large": partial(large, large_mib), "lost": majority_lost}


def small(bed: Bed, runs: int, progress: Progress) -> Iterator[Verdict]:
    """An EtcdRestore of a small backup: what Kubernetes and the start of programs cost."""
    with _backup(SMALL_MIB, progress) as folder:
        ours, bare, _ = _in_turn(bed, folder, SMALL_MIB, runs, progress)
    name = f"{SMALL_MIB} MiB, {MEMBERS} members"
    yield median_of(f"{name}: by hand", bare)
    yield median_of(f"{name}: EtcdRestore, from its creation to serving", ours, at_most=SMALL_SECONDS)
    yield Verdict(
        name=f"{name}: EtcdRestore / by hand", value=median(ours) / median(bare), at_most=SMALL_RATIO
    )


def large(mib: int, bed: Bed, runs: int, progress: Progress) -> Iterator[Verdict]:
    """The same of a large one: what reading and writing cost."""
    with _backup(mib, progress) as folder:
        ours, bare, plain = _in_turn(bed, folder, mib, runs, progress, with_processes=True)
    yield from verdicts_of_large(mib, ours, bare, plain)


def verdicts_of_large(
    mib: int, ours: list[float], bare: list[float], plain: list[tuple[float, float]]
) -> Iterator[Verdict]:
    """The figures. plain: seconds of downloads and of etcdutl, as processes."""
    name = f"{mib} MiB, {MEMBERS} members"
    downloads, restores = (median(seconds) for seconds in zip(*plain, strict=True))
    yield median_of(f"{name}: by hand, in pods", bare)
    yield Verdict(name=f"{name}: downloads alone, median", value=downloads, unit="s")
    yield Verdict(name=f"{name}: etcdutl alone, median", value=restores, unit="s")
    yield median_of(f"{name}: EtcdRestore, from its creation to serving", ours)
    slowest = max(downloads, restores)
    yield Verdict(
        name=f"{name}: EtcdRestore / the slower of download and etcdutl",
        value=median(ours) / slowest,
        at_most=LARGE_RATIO,
        note=f"/ by hand in pods: {median(ours) / median(bare):.2f}",
    )


def majority_lost(bed: Bed, runs: int, progress: Progress) -> Iterator[Verdict]:
    """Two of the three pods of a coreos.com cluster with backups are deleted."""
    serving, complete = [], []
    for run in range(runs):
        with bed.namespace() as namespace:
            served, all_serve = _lose_majority(bed, namespace)
        serving.append(served)
        complete.append(all_serve)
        progress(f"two of three lost, run {run + 1}: serving {served:.2f} s, three members {all_serve:.2f} s")
    name = "coreos.com, two of three lost"
    yield median_of(f"{name}: from both pods gone to serving", serving, at_most=LOST_SECONDS)
    yield median_of(f"{name}: from both pods gone to three members", complete)


def _in_turn(
    bed: Bed, folder: Path, mib: int, runs: int, progress: Progress, *, with_processes: bool = False
) -> tuple[list[float], list[float], list[tuple[float, float]]]:
    ours: list[float] = []
    bare: list[float] = []
    plain: list[tuple[float, float]] = []
    for run in range(runs):
        if with_processes:
            plain.append(restored_by_hand.processes(folder / FILE, MEMBERS))
            progress(f"{mib} MiB run {run + 1}: download {plain[-1][0]:.2f} s, etcdutl {plain[-1][1]:.2f} s")
        with _with_backup(bed, folder, mib) as namespace:
            document = _document(mib)
            bare.append(restored_by_hand.restore(bed, document, namespace, CLAIM, FILE))
        with _with_backup(bed, folder, mib) as namespace:
            seconds, timeline = _restore(bed, mib, namespace)
            ours.append(seconds)
        progress(
            f"{mib} MiB run {run + 1}: by hand {bare[-1]:.2f} s, EtcdRestore {seconds:.2f} s "
            f"({timeline.text()})"
        )
    return ours, bare, plain


def _restore(bed: Bed, mib: int, namespace: str) -> tuple[float, Timeline]:
    """Seconds from the creation of an EtcdRestore until its members serve; and its steps."""
    document = _document(mib)
    timeline = Timeline(time.monotonic())
    bed.api.create(resources.RESTORES, namespace, restore_document(document))
    with Members(deadline=1.0) as members:

        def is_serving() -> bool:
            reason = _reason(bed, namespace)
            timeline.note(reason, time.monotonic())
            return reason == "Restored" and members.all_serve(
                bed.api.member_pods(document, namespace), MEMBERS
            )

        wait_until(is_serving, f"the EtcdRestore in {namespace} serves", within=LIMIT, every=POLL_SECONDS)
    return time.monotonic() - timeline.began, timeline


def _reason(bed: Bed, namespace: str) -> str:
    found = bed.api.get(resources.RESTORES, namespace, NAME) or {}
    status = found.get("status", {})
    if status.get("phase") == "Failed":
        raise RuntimeError(f"the EtcdRestore failed: {status['failure']}")
    return next(
        (each["reason"] for each in status.get("conditions", ()) if each["type"] == "Complete"), "Seen"
    )


def restore_document(cluster: Document) -> Document:
    """An EtcdRestore of the backup on the claim."""
    source = {"objectURL": f"file:///{FILE}", "persistentVolumeClaim": {"claimName": CLAIM}}
    template = {"clusterName": NAME, "spec": cluster["spec"]}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": NAME},
        "spec": {"source": source, "clusterTemplate": template},
    }


def _document(mib: int) -> Document:
    document = persistent(NAME, MEMBERS)
    claim = document["spec"]["storage"]["volumeClaimTemplate"]
    claim["resources"] = {"requests": {"storage": f"{2 * mib + 100}Mi"}}
    return document


@contextmanager
def _with_backup(bed: Bed, folder: Path, mib: int) -> Iterator[str]:
    """A namespace with the backup on a claim; its volumes are gone at the end."""
    with bed.namespace() as namespace:
        spec = {
            "storageClassName": "standard",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": f"{2 * mib + 100}Mi"}},
        }
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": CLAIM},
            "spec": spec,
        }
        bed.api.create(resources.CLAIMS, namespace, claim)
        space = bed.space(namespace)
        wait_until(lambda: _is_bound(bed, namespace), "the claim is bound", within=60, every=POLL_SECONDS)
        for file in folder.iterdir():
            _link(file, claim_folder(space, CLAIM) / file.name)
        yield namespace
    wait_until(
        lambda: not _has_volumes(bed, namespace), f"the volumes of {namespace} are deleted", within=120
    )


def _is_bound(bed: Bed, namespace: str) -> bool:
    claim = bed.api.get(resources.CLAIMS, namespace, CLAIM) or {}
    return bool(claim.get("status", {}).get("phase") == "Bound")


def _link(file: Path, target: Path) -> None:
    """The same bytes at another place, without a copy where that is possible."""
    try:
        os.link(file, target)
    except OSError:
        shutil.copyfile(file, target)
    target.chmod(0o644)


def _has_volumes(bed: Bed, namespace: str) -> bool:
    volumes = bed.api.all_of(VOLUMES)
    return any(each["spec"].get("claimRef", {}).get("namespace") == namespace for each in volumes)


@contextmanager
def _backup(mib: int, progress: Progress) -> Iterator[Path]:
    """A folder with a backup of a database of that size, and its manifest."""
    with tempfile.TemporaryDirectory(prefix="etcd-operator-bench-") as folder:
        store = Path(folder, "store")
        store.mkdir()
        with tempfile.TemporaryDirectory(dir=folder) as data, member(Path(data)) as etcd:
            progress(f"{mib} MiB: filling the database")
            etcd.fill(mib * MIB, progress)
            command = [sys.executable, "-m", "etcd_operator", "backup", "--endpoints", etcd.endpoint]
            subprocess.run(
                [*command, "--to", str(store / FILE), "--quiet"],
                check=True,
                stdout=sys.stderr,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
        yield store


def _lose_majority(bed: Bed, namespace: str) -> tuple[float, float]:
    """Seconds from the moment at which two pods are gone, until a member serves and until three do."""
    backup = {"backupIntervalInSecond": 2, "maxBackups": 3, "volumeSizeInMB": 50}
    document = ephemeral(NAME, backup=backup)
    bed.create(document, namespace)
    bed.until_serving(document, namespace, since=time.monotonic())
    wait_until(lambda: _is_backed_up(bed, document, namespace), "a backup is stored", within=120)
    lost = [pod["metadata"]["name"] for pod in bed.api.member_pods(document, namespace)][:2]
    space = bed.space(namespace)
    space.kubectl("delete", "pod", *lost, "--now", "--wait=false")
    wait_until(
        lambda: not set(lost) & set(space.names(resources.PODS)),
        "both are gone",
        within=60,
        every=POLL_SECONDS,
    )
    certain = time.monotonic()
    with Members(deadline=1.0) as members:
        wait_until(
            lambda: any(_serves(members, pod) for pod in bed.api.member_pods(document, namespace)),
            "a member serves",
            within=120,
            every=POLL_SECONDS,
        )
    served = time.monotonic() - certain
    return served, bed.until_serving(document, namespace, since=certain, limit=300)


def _is_backed_up(bed: Bed, document: Document, namespace: str) -> bool:
    found = condition(bed.api.cluster(document, namespace), "BackupHealthy")
    return bool(found["status"] == "True")


def _serves(members: Members, pod: Document) -> bool:
    """Whether clients are sent to this pod, and a quorum answers there."""
    conditions = pod.get("status", {}).get("conditions", ())
    is_ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return is_ready and members.client(pod["status"]["podIP"]).has_quorum(deadline=1.0)
