"""The StorageClass that `--pv-provisioner` asks for."""

import pytest

from etcd_operator.controllers.shared.storage_class import RETRY_SECONDS, StorageClass
from unit.fakes.apiserver import ApiServer
from unit.fakes.apiserver.faults import Answer
from unit.fakes.apiserver.kinds import STORAGE_CLASSES
from unit.passes.harness import objects_of

NAME = "etcd-operator-backup-gce-pd"


def test_it_is_made_once_and_one_that_exists_is_left_as_it_is() -> None:
    with ApiServer() as api:
        client = objects_of(api).client
        for provisioner in ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"):
            StorageClass(client, provisioner, wait=lambda _: True).create()
        (made,) = api.objects.select(STORAGE_CLASSES)
        assert (made["metadata"]["name"], made["provisioner"]) == (NAME, "pd.csi.storage.gke.io")


@pytest.mark.parametrize(
    "answer", [Answer(code=403, reason="Forbidden"), Answer(code=500, reason="InternalError")]
)
def test_it_is_tried_again_until_the_process_ends(answer: Answer) -> None:
    with ApiServer() as api:
        client = objects_of(api).client
        api.before = lambda _: answer
        waited: list[float] = []

        def wait(seconds: float) -> bool:
            waited.append(seconds)
            if len(waited) == 2:
                api.before = lambda _: None
            return False

        StorageClass(client, "kubernetes.io/gce-pd", wait=wait).create()
        assert waited == [RETRY_SECONDS, RETRY_SECONDS]
        assert [each["metadata"]["name"] for each in api.objects.select(STORAGE_CLASSES)] == [NAME]
        StorageClass(client, "kubernetes.io/aws-ebs", wait=lambda _: True).create()


def test_a_process_that_ends_does_not_wait() -> None:
    with ApiServer() as api:
        client = objects_of(api).client
        api.before = lambda _: Answer(code=500, reason="InternalError")
        StorageClass(client, "kubernetes.io/gce-pd", wait=lambda _: True).create()
        assert api.objects.select(STORAGE_CLASSES) == []
