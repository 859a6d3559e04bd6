"""The benchmark of restores: what it makes by hand, and what it reports of its runs."""

from pathlib import Path

import msgspec
import pytest

from benchmark import cli, floor, restored_by_hand, restoring
from benchmark.restoring import Timeline
from e2e.support.clusters import persistent
from etcd_operator.api.restores import RestoreSpec
from etcd_operator.controllers.etcd_restore.decide import spec as specs
from etcd_operator.controllers.shared.manifests.pod import RESTORED_DIR
from etcd_operator.kube import resources


def test_the_members_by_hand_start_on_what_their_pods_have_restored() -> None:
    made = floor.Blueprint(persistent("bench"), "ns", is_restored=True)
    pods = [body for resource, body in made.objects() if resource is resources.PODS]
    peers = {name: f"http://{made.host_of(name)}:2380" for name in made.initial_members}
    for pod in pods:
        filling = restored_by_hand.filling(pod, peers, "backups", "one.db")
        (container,) = filling["spec"]["containers"]
        assert f"--data-dir={RESTORED_DIR}" in container["command"]
        assert "/backups/one.db" in container["command"]
        environment = {each["name"]: each.get("value") for each in pod["spec"]["containers"][0]["env"]}
        assert environment["ETCD_DATA_DIR"] == RESTORED_DIR
        claims = [each.get("persistentVolumeClaim") for each in filling["spec"]["volumes"]]
        assert {"claimName": "backups"} in claims
        assert {"claimName": pod["metadata"]["name"]} in claims
        assert filling["metadata"]["name"] != pod["metadata"]["name"]
        assert "hostname" not in filling["spec"], "the member has that name"


def test_the_restore_that_is_measured_is_a_valid_one() -> None:
    document = restoring.restore_document(restoring._document(2048))
    parsed = msgspec.convert(document["spec"], RestoreSpec)
    assert specs.problem(parsed) == ""
    assert (specs.storage(parsed) or 0) > 2048 << 20


@pytest.mark.parametrize(("seconds", "is_kept"), [(25.0, True), (25.1, False)])
def test_a_large_one_is_compared_with_the_slower_of_download_and_etcdutl(
    seconds: float, is_kept: bool
) -> None:
    found = list(restoring.verdicts_of_large(256, [seconds], [30.0], [(5.0, 20.0)]))
    assert [verdict.is_kept for verdict in found if verdict.at_most is not None] == [is_kept]
    assert found[-1].value == seconds / 20.0


def test_each_step_is_noted_when_it_was_first_seen() -> None:
    timeline = Timeline(began=10.0)
    for now, reason in ((10.5, "Verifying"), (11.0, "Verifying"), (13.0, "Restoring")):
        timeline.note(reason, now)
    assert timeline.text() == "Verifying 0.5, Restoring 3.0"


def test_processes_that_fail_are_no_measurement(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="false failed"):
        restored_by_hand._together([["true"], ["false"]][::-1])


def test_the_size_is_for_restores_only(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["create", "--mib", "5"])
    assert "create has no --mib" in capsys.readouterr().err
