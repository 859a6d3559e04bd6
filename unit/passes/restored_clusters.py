"""Persistent clusters that are restored from an EtcdBackup, after a loss or in place; tests play the Job."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from etcd_operator.formats import hex_id
from unit.fakes.apiserver import Json
from unit.fakes.apiserver.kinds import CLAIMS, JOBS, PODS, SERVICES
from unit.fakes.etcd.launcher import Saved
from unit.passes.bench import Bench, bootstrapped
from unit.passes.bodies import BACKUPS, IMPROBABLE, persistent
from unit.passes.jobs import Jobs, backup, container, ended
from unit.passes.manual_recoveries import CLIENTS

RESTORE = "etcd.improbable.io/restore"
SHA256 = "ab" * 32
DAMAGED = {"error": "one.db is damaged", "reason": "Damaged"}


class Stored:
    """The EtcdBackups of the cluster `c`, and the Job that restores one of them."""

    def __init__(self, made: Bench) -> None:
        self.made = made
        self.jobs = Jobs(made)
        self.failure: Json | None = None
        self._saved: dict[str, Saved] = {}

    def take(self, name: str = "one", **changes: Any) -> None:
        """A completed EtcdBackup of what the cluster has now."""
        etcd = self.made.etcd.etcd
        saved = Saved(dict(etcd.keys), etcd.revision, etcd.on_write, deepcopy(etcd.auth))
        self._saved[f"s3://bucket/{name}.db"] = saved
        source = {"source": {"clusterName": "c"}}
        self.made.create(*backup(name, **source))
        status = {
            "phase": "Completed",
            "url": f"s3://bucket/{name}.db",
            "revision": etcd.revision,
            "sha256": SHA256,
            "etcdVersion": "3.6.16",
            "clusterID": hex_id(etcd.cluster_id),
            "clusterUID": self.made.get(IMPROBABLE)["metadata"]["uid"],
            "startTime": "2026-01-01T00:00:00Z",
            **changes,
        }
        self.made.edit(BACKUPS, name, {"status": status}, subresource="status")

    def ask(self, name: str | None) -> None:
        """As `kubectl annotate`."""
        self.made.edit(IMPROBABLE, "c", {"metadata": {"annotations": {RESTORE: name}}})

    def run_job(self) -> bool:
        """Run a Job that has no pod, as `etcd-operator restore` does; whether there was one."""
        waiting = self.jobs.waiting()
        if waiting:
            self._restore(waiting[0])
        return bool(waiting)

    def _restore(self, job: Json) -> None:
        (main,) = job["spec"]["template"]["spec"]["containers"]
        pod = self.jobs.start(job, phase="Running", **container(main["name"], running={}))
        if self.failure is None:
            self._fill(job, main["args"])
        self.jobs.report(pod, **ended(self.failure, 1 if self.failure else 0, name=main["name"]))
        self.jobs.end(job, "Failed" if self.failure else "Complete")

    def _fill(self, job: Json, words: list[str]) -> None:
        flags = dict(word[2:].split("=", 1) for word in words if word.startswith("--") and "=" in word)
        assert flags["sha256"] == SHA256
        volumes = job["spec"]["template"]["spec"]["volumes"]
        (name,) = [
            volume["persistentVolumeClaim"]["claimName"]
            for volume in volumes
            if "persistentVolumeClaim" in volume
        ]
        directory = f"{self.made.get(CLAIMS, name)['metadata']['uid']}{flags['data-dir']}"
        if not self.made.etcds.has_data(directory):  # complete data is left alone
            old = self._saved[words[1]]
            self.made.etcds.restore(flags, directory=directory, old=old, unique=job["metadata"]["uid"])

    def until(self, claim: Callable[[], bool]) -> None:
        """Take turns with the operator until `claim` holds; Jobs run as soon as they exist."""
        self.made.run_until(claim, 900, first=self.run_job)

    def until_restored(self) -> None:
        """The cluster has another ID, and is as desired."""
        before = self.made.status(IMPROBABLE)["clusterID"]
        self.until(lambda: self.made.status(IMPROBABLE)["clusterID"] != before)
        self.expire()
        self.made.settle()

    def go_on(self) -> None:
        """Another operator starts where one died; then the cluster has another ID, and is as desired."""
        self.made.world.settle()
        self.made.start()
        self.until(lambda: self.made.status(IMPROBABLE)["clusterID"] != "c0de")
        self.made.settle()

    def expire(self) -> None:
        """Jobs that have ended are deleted, with their pods, as their ttlSecondsAfterFinished asks for."""
        for pod in self.jobs.pods():
            self.made.delete(PODS, pod["metadata"]["name"])
        for job in self.jobs.all():
            assert job["spec"]["ttlSecondsAfterFinished"]
            self.made.delete(JOBS, job["metadata"]["name"])

    @property
    def selected(self) -> str:
        """The token that the Service selects by."""
        return str(self.made.get(SERVICES)["spec"]["selector"][CLIENTS])


@contextmanager
def stored(size: int = 3, **spec: Any) -> Iterator[tuple[Bench, Stored]]:
    """A cluster with a key, one backup of it, and then a key that the backup does not have."""
    with bootstrapped(*persistent(size=size, **spec), alone=False) as made:
        backups = Stored(made)
        backups.take()
        made.etcd.put(b"later", b"value")
        yield made, backups
