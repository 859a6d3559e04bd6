"""What Kubernetes would evict at the moment when the operator stops or removes a member."""

import pytest

from unit.fakes.apiserver import Kind
from unit.fakes.apiserver.faults import Request
from unit.fakes.apiserver.kinds import BUDGETS, PODS
from unit.passes.bench import Bench, bootstrapped
from unit.passes.bodies import COREOS
from unit.passes.expected import assert_finished
from unit.passes.upgrades import BOTH, of, set_version

SIZES = pytest.mark.parametrize("size", [2, 3, 4, 5])


def _evictable(made: Bench) -> int:
    """How many evictions are allowed: no kubelet has reported yet that another member is about to end."""
    counted = [pod for pod in made.api.objects.select(PODS) if _counts(pod)]
    return max(0, len(counted) - int(made.get(BUDGETS)["spec"]["minAvailable"]))


def _counts(pod: dict[str, dict[str, object]]) -> bool:
    conditions = pod["status"].get("conditions") or ()
    serves = any(c["type"].endswith("/member-serves") and c["status"] == "True" for c in conditions)  # type: ignore[attr-defined]
    return serves and "deletionTimestamp" not in pod["metadata"]


def _is_stop(request: Request) -> bool:
    """Whether an upgrade stops a member with it: by another image, or without its EtcdPeer."""
    if request.plural == "pods" and request.method == "PATCH":
        return isinstance(request.body, dict) and "containers" in request.body.get("spec", {})
    return request.plural == "etcdpeers" and request.method == "DELETE"


@BOTH
@SIZES
def test_evictions_and_the_stop_of_a_member_leave_a_quorum(kind: Kind, size: int) -> None:
    with bootstrapped(*of(kind, "3.6.16", size)) as made:
        left: list[int] = []

        def before(request: Request) -> None:
            if _is_stop(request):
                left.append(len(made.etcd.running) - 1 - _evictable(made))

        made.api.before = before
        set_version(made, kind, "3.6.17")
        made.settle()
        assert len(left) == size
        if size > 2:
            assert min(left) >= size // 2 + 1
        assert_finished(made, kind, size, version="3.6.17")


@BOTH
@SIZES
def test_evictions_and_the_removal_of_a_member_leave_a_quorum(kind: Kind, size: int) -> None:
    with bootstrapped(*of(kind, "3.6.16", size)) as made:
        etcd, left = made.etcd.etcd, []

        def on_write(method: str, applied: bool) -> None:
            if method == "MemberRemove" and not applied:
                remaining = len(etcd.voters) - 1
                left.append((remaining - _evictable(made), remaining // 2 + 1))

        etcd.on_write = on_write
        made.edit(kind, "c", {"spec": {"size" if kind is COREOS else "replicas": 1}})
        made.settle()
        assert len(left) == size - 1
        assert all(serving >= quorum for serving, quorum in left), left
        etcd.on_write = None
