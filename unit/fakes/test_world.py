"""The world model: what it does in a step, and what it leaves alone."""

from collections.abc import Callable, Iterator

import pytest

from unit.fakes.apiserver import ApiServer, Json
from unit.fakes.apiserver.kinds import CLAIMS, PODS
from unit.fakes.containers import Running
from unit.fakes.world import World


class Bench:
    def __init__(self, api: ApiServer) -> None:
        self.api = api
        self.calls: list[str] = []
        self.world = World(api, on_start=self._recording("start"), on_stop=self._recording("stop"))

    def _recording(self, word: str) -> Callable[[Running], None]:
        def record(running: Running) -> None:
            self.calls.append(f"{word} {running.pod} {running.image}")

        return record

    def pod(self, name: str = "p", **spec: object) -> Json:
        name_of_pod = {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
        command = ["etcd", "--name=$(NAME)"]
        mounts = [{"name": "data", "mountPath": "/data"}] if "volumes" in spec else []
        container: Json = {"name": "etcd", "image": "etcd:1", "command": command, "env": [name_of_pod]}
        container["volumeMounts"] = mounts
        body = {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}
        return self.api.objects.create(PODS, "default", body)

    def claim(self) -> Json:
        spec = {"accessModes": ["ReadWriteOnce"]}
        return self.api.objects.create(CLAIMS, "default", {"metadata": {"name": "claim"}, "spec": spec})

    def pods(self) -> list[Json]:
        return self.api.objects.select(PODS)


VOLUMES = [{"name": "data", "persistentVolumeClaim": {"claimName": "claim"}}]


@pytest.fixture
def bench() -> Iterator[Bench]:
    with ApiServer() as api:
        yield Bench(api)


def test_a_pod_on_a_node_that_is_down_stays_terminating_and_its_process_runs_on(bench: Bench) -> None:
    bench.pod()
    bench.world.settle()
    bench.world.up.clear()
    bench.api.objects.delete(PODS, "default", "p")
    bench.world.settle()
    assert bench.pods()[0]["metadata"]["deletionTimestamp"]
    assert bench.calls == ["start p etcd:1"]


def test_a_pod_waits_for_its_claim(bench: Bench) -> None:
    bench.pod(volumes=VOLUMES)
    bench.world.settle()
    assert bench.pods()[0]["status"]["phase"] == "Pending"
    bench.claim()
    bench.world.settle()
    assert bench.pods()[0]["status"]["phase"] == "Running"
    assert bench.world.running[0].claims == ("claim",)


def test_a_pod_that_failed_is_not_run_again(bench: Bench) -> None:
    bench.pod()
    bench.world.settle()
    bench.world.fail("default", "p")
    bench.world.settle()
    assert bench.pods()[0]["status"]["phase"] == "Failed"
    assert bench.calls[-1] == "stop p etcd:1"


def test_a_container_restarted_in_place_keeps_its_address(bench: Bench) -> None:
    bench.pod()
    bench.world.settle()
    ip = bench.world.running[0].ip
    bench.world.restart("default", "p")
    assert [(running.ip, running.restarts) for running in bench.world.running] == [(ip, 1)]
