"""EtcdRestores, and the Jobs that one has, played step by step by a test."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from unit.fakes.apiserver import Json
from unit.fakes.apiserver.kinds import CLAIMS, PODS
from unit.passes.bench import Bench, bench
from unit.passes.bodies import IMPROBABLE, RESTORES, STORAGE
from unit.passes.jobs import Jobs, container, container_of, ended

SNAPSHOT = {
    "etcdVersion": "3.6.16",
    "revision": 7,
    "keys": 3,
    "size": 20512,
    "sha256": "ab" * 32,
    "check": "manifest",
}
PREFIX = "etcd.improbable.io"
TEMPLATE = {"replicas": 3, "storage": STORAGE}


def restore(name: str = "r", source: Json | None = None, template: Json | None = None) -> tuple[Any, Json]:
    """An EtcdRestore to the cluster `c`."""
    spec = {
        "source": source or {"objectURL": "s3://bucket/one.db"},
        "clusterTemplate": {"clusterName": "c", "spec": template or TEMPLATE},
    }
    return RESTORES, {"metadata": {"name": name}, "spec": spec}


class Restoring:
    """The EtcdRestore `r` of a bench, and what it makes."""

    def __init__(self, made: Bench) -> None:
        self.made = made
        self.jobs = Jobs(made)
        self.answers: dict[str, tuple[Json, int]] = {}
        """What the Job whose name contains this reports, and its exit code."""

    @property
    def status(self) -> Json:
        return self.made.status(RESTORES, "r")

    @property
    def phase(self) -> str:
        return str(self.status.get("phase", ""))

    @property
    def reason(self) -> str:
        return str(self.made.condition(RESTORES, "Complete", "r").get("reason", ""))

    @property
    def message(self) -> str:
        return str(self.made.condition(RESTORES, "Complete", "r").get("message", ""))

    @property
    def claims(self) -> list[str]:
        return sorted(self.made.names(CLAIMS))

    @property
    def clusters(self) -> list[str]:
        return self.made.names(IMPROBABLE)

    def annotations(self, claim: str) -> dict[str, str]:
        return dict(self.made.get(CLAIMS, claim)["metadata"]["annotations"])

    def named(self, part: str) -> list[Json]:
        return [job for job in self.jobs.all() if part in job["metadata"]["name"]]

    def begun(self, size: int = 3) -> list[Json]:
        """The Jobs of all members of a restore that is created now; nothing has run them yet."""
        self.made.create(*restore(template={**TEMPLATE, "replicas": size}))
        self.until(lambda: len(self.named("r-0-")) == 1)
        self.made.drain()
        return [job for number in range(size) for job in self.named(f"r-{number}-")]

    def start(self, job: Json) -> str:
        """Its pod runs."""
        return self.jobs.start(
            job, phase="Running", podIP="10.9.0.1", **container(container_of(job), running={})
        )

    def finish(self, job: Json, pod: str, document: Json | None, exit_code: int) -> None:
        """Its pod ends with this report, and the Job with it."""
        self.jobs.report(pod, **ended(document, exit_code, name=container_of(job)))
        self.jobs.end(job, "Failed" if exit_code else "Complete")

    def end_container(self, job: Json, pod: str, document: Json | None, exit_code: int = 0) -> None:
        """Its container ends with this report, and Kubernetes has not noted the end of the pod."""
        self.jobs.report(pod, **{**ended(document, exit_code, name=container_of(job)), "phase": "Running"})

    def run_all(self) -> bool:
        """Run every Job that has no pod; whether there was one."""
        waiting = self.jobs.waiting()
        for job in waiting:
            name = job["metadata"]["name"]
            found = next((answer for part, answer in self.answers.items() if part in name), None)
            document, code = found if found is not None else ({"snapshot": SNAPSHOT}, 0)
            self.finish(job, self.start(job), document, code)
        return bool(waiting)

    def until(self, claim: Callable[[], bool]) -> None:
        """Take turns with the operator until `claim` holds; Jobs run as soon as they exist."""
        self.made.run_until(claim, 400, first=self.run_all)

    def until_ended(self, phase: str = "Completed") -> None:
        self.until(lambda: self.phase in ("Completed", "Failed"))
        assert self.phase == phase, self.status

    def assert_nothing_left(self) -> None:
        """Neither Jobs nor pods nor claims nor a cluster."""
        self.until(lambda: not self.jobs.all() and not self.claims)
        assert self.clusters == []
        assert [pod for pod in self.made.names(PODS) if pod.startswith("r-")] == []


@pytest.fixture
def made() -> Iterator[Restoring]:
    """An operator at work, and the EtcdRestore `r` that a test creates."""
    with bench() as world:
        world.start()
        yield Restoring(world)
