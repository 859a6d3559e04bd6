"""Kubernetes' Job controller and the pods of Jobs, played step by step by a test."""

import json
from collections.abc import Callable
from typing import Any

from unit.fakes.apiserver import Json
from unit.fakes.apiserver.faults import Answer, Request
from unit.fakes.apiserver.kinds import JOBS, PODS
from unit.passes.bench import Bench
from unit.passes.bodies import BACKUPS, SCHEDULES

MANIFEST = {
    "formatVersion": 1,
    "etcdVersion": "3.6.16",
    "clusterID": "00000000000c0ffe",
    "memberID": "0000000000000001",
    "revision": 7,
    "keys": 3,
    "size": 20512,
    "sha256": "ab" * 32,
    "storedSize": 20512,
}
STORED = {"name": "one.db", "source": "c:2379", "seconds": 1.25, "manifest": MANIFEST}
PROVEN = {
    "name": "one.db",
    "seconds": 2.5,
    "manifest": MANIFEST,
    "restore": {"etcdVersion": "3.6.16", "revision": 7, "keys": 3, "hashKV": 5, "hashKVCompared": True},
}
"""The report of a verification, with a test restore."""

PRUNED = {"removed": 2, "removedSize": 41024, "kept": 3}
ELSEWHERE = "played-by-the-test"
"""A node that no kubelet of the world runs."""


def backup(name: str = "one", **spec: Any) -> tuple[Any, Json]:
    """An EtcdBackup; by default of a cluster that the operator does not know."""
    wanted = {
        "source": {"clusterURL": "http://etcd.example:2379"},
        "destination": {"objectURLTemplate": "s3://bucket/{{ .Namespace }}/{{ .Name }}.db"},
    }
    return BACKUPS, {"metadata": {"name": name}, "spec": {**wanted, **spec}}


def schedule(name: str = "s", **spec: Any) -> tuple[Any, Json]:
    """An EtcdBackupSchedule; by default every five minutes."""
    template = backup()[1]["spec"]
    return SCHEDULES, {
        "metadata": {"name": name},
        "spec": {"schedule": "*/5 * * * *", "backupTemplate": template, **spec},
    }


class Jobs:
    """All Jobs of a bench."""

    def __init__(self, made: Bench) -> None:
        self._made = made

    def all(self) -> list[Json]:
        """Every Job."""
        return [dict(each) for each in self._made.api.objects.select(JOBS)]

    def one(self) -> Json:
        """The only Job."""
        (job,) = self.all()
        return job

    def refuse(self, code: int, reason: str, message: str, *, named: str = "") -> None:
        """Let the API server create no Job whose name has this part, until `before` is set again."""

        def refused(request: Request) -> Answer | None:
            is_meant = request.plural == "jobs" and request.method == "POST" and named in str(request.body)
            return Answer(code=code, reason=reason, message=message) if is_meant else None

        self._made.api.before = refused

    def pods(self) -> list[Json]:
        """The pods of Jobs."""
        return [
            pod for pod in self._made.api.objects.select(PODS) if pod["spec"].get("nodeName") == ELSEWHERE
        ]

    def start(self, job: Json, **status: Any) -> str:
        """Make the pod of a Job, running unless `status` sets another phase; its name."""
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job["metadata"]["name"]}
        template = job["spec"]["template"]
        pod = self._made.create(
            PODS,
            {
                "metadata": {
                    "generateName": job["metadata"]["name"] + "-",
                    "labels": template["metadata"]["labels"],
                    "ownerReferences": [{**owner, "uid": job["metadata"]["uid"], "controller": True}],
                },
                "spec": {**template["spec"], "nodeName": ELSEWHERE},
            },
        )
        name = str(pod["metadata"]["name"])
        self.report(name, **(status or {"phase": "Running", **container(running={})}))
        return name

    def report(self, pod: str, **status: Any) -> None:
        """What the kubelet writes."""
        self._made.edit(PODS, pod, {"status": status}, subresource="status")

    def end(self, job: Json, kind: str, message: str = "") -> None:
        """What the Job controller writes; kind: Complete or Failed."""
        conditions = [{"type": kind, "status": "True", "message": message}]
        self._made.edit(
            JOBS, job["metadata"]["name"], {"status": {"conditions": conditions}}, subresource="status"
        )

    def run(self, job: Json, document: Json | None = None, exit_code: int = 0) -> None:
        """From the start of its pod to its end."""
        name = container_of(job)
        pod = self.start(job, phase="Running", **container(name, running={}))
        self.report(pod, **ended(document, exit_code, name=name))
        self.end(job, "Failed" if exit_code else "Complete")

    def waiting(self) -> list[Json]:
        """Those that have no pod, and are neither suspended nor being deleted."""
        owners = (owner for pod in self.pods() for owner in pod["metadata"].get("ownerReferences", ()))
        begun = {owner["uid"] for owner in owners}
        kept = (job for job in self.all() if not job["metadata"].get("deletionTimestamp"))
        return [
            job
            for job in kept
            if job["metadata"]["uid"] not in begun and not job["spec"].get("suspend", False)
        ]

    def run_all(self) -> bool:
        """Run every Job that has not begun, to success; whether there was one."""
        waiting = self.waiting()
        for job in waiting:
            self.run(job, _report(job))
        return bool(waiting)

    def until(self, claim: Callable[[], bool]) -> None:
        """Take turns with the operator until `claim` holds; Jobs run as soon as they exist."""
        self._made.run_until(claim, 300, first=self.run_all)


Made = tuple[Bench, Jobs]
"""What the fixture `made` gives."""


def is_prune(job: Json) -> bool:
    """Whether it removes old backups of a schedule."""
    return str(job["spec"]["template"]["spec"]["containers"][0]["args"][0]) == "prune"


def _report(job: Json) -> Json:
    if is_prune(job):
        return PRUNED
    return PROVEN if container_of(job) == "verify" else STORED


def container_of(job: Json) -> str:
    """The name of the container of a Job: backup, or verify."""
    (one,) = job["spec"]["template"]["spec"]["containers"]
    return str(one["name"])


def container(name: str = "backup", /, **state: Any) -> Json:
    """The status of a pod with one container in this state."""
    return {"containerStatuses": [{"name": name, "state": state}]}


def beside_proxy(status: Json) -> Json:
    """The same where a webhook has added a container that never ends."""
    proxy = {"name": "istio-proxy", "state": {"running": {}}}
    return {"phase": "Running", "containerStatuses": [*status["containerStatuses"], proxy]}


def ended(document: Json | None, exit_code: int = 0, reason: str = "", name: str = "backup") -> Json:
    """The status of a pod whose command has ended with this report."""
    message = json.dumps(document) if document is not None else ""
    how = reason or ("Error" if exit_code else "Completed")
    terminated = {"exitCode": exit_code, "reason": how, "message": message}
    return {"phase": "Failed" if exit_code else "Succeeded", **container(name, terminated=terminated)}
