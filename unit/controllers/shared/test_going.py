"""Clusters whose namespace is being deleted, in any order: nothing of them is reported as lost."""

import pytest

from unit.controllers.etcd_cluster.test_adopt import Make
from unit.fakes.apiserver.faults import Answer, Request
from unit.fakes.apiserver.kinds import PODS
from unit.passes.bench import Bench, bootstrapped
from unit.passes.bodies import MAKERS, ephemeral

LOSSES = {"QuorumLost", "BackupPending", "NoBackup"}
GONE = Answer(code=404, reason="NotFound", message="it is gone")
FORBIDDEN = Answer(code=403, reason="Forbidden", message="no right to read it")


def lose_pods(made: Bench, namespace: Answer | None) -> None:
    """All at once; namespace: what the API server answers to who reads that."""

    def answer(request: Request) -> Answer | None:
        return namespace if request.method == "GET" and request.plural == "namespaces" else None

    made.api.before = answer
    for pod in made.api.objects.select(PODS):
        made.api.objects.delete(PODS, "default", pod["metadata"]["name"], grace=0)
    made.wait(60.0)


@MAKERS
def test_a_cluster_in_a_namespace_that_goes_reports_no_loss(make: Make) -> None:
    kind, body = make()
    with bootstrapped(kind, body, alone=False) as made:
        lose_pods(made, GONE)
        assert not LOSSES & set(made.event_reasons())
        assert made.reason(kind) not in LOSSES


@pytest.mark.parametrize("namespace", [None, FORBIDDEN], ids=["there", "unknown"])
def test_elsewhere_a_loss_is_reported(namespace: Answer | None) -> None:
    kind, body = ephemeral()
    with bootstrapped(kind, body, alone=False) as made:
        lose_pods(made, namespace)
        assert LOSSES & set(made.event_reasons())
        assert made.reason(kind) in LOSSES
