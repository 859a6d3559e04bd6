"""The remains of a failed test as files: objects, events, logs, member lists and the operator's log."""

import tempfile
from pathlib import Path

from e2e.support.members import Members
from e2e.support.space import Space
from etcd_operator.errors import OperatorError
from etcd_operator.kube import resources

KINDS = (
    "etcdclusters.coreos.com,etcdclusters.etcd.improbable.io,etcdpeers.etcd.improbable.io,"
    "pods,services,replicasets,persistentvolumeclaims"
)


def dump(space: Space, test: str) -> Path:
    """Write all that may explain a failure; the folder."""
    folder = Path(tempfile.gettempdir()) / "etcd-operator-e2e" / f"{test}-{space.namespace}"
    folder.mkdir(parents=True, exist_ok=True)
    kubectl = space.kubectl
    for name, arguments in {
        "objects.yaml": ("get", KINDS, "-o", "yaml"),
        "objects.txt": ("get", KINDS, "-o", "wide"),
        "describe.txt": ("describe", KINDS),
        "events.txt": ("get", "events", "--sort-by=.lastTimestamp"),
    }.items():
        _write(folder / name, lambda arguments=arguments: kubectl(*arguments, check=False))
    _write(folder / "members.txt", lambda: _member_lists(space))
    _write(folder / "operator.log", space.operator.log)
    for pod in kubectl("get", "pods", "-o", "name", check=False).split():
        if pod.startswith("pod/"):
            _write(
                folder / f"{pod.removeprefix('pod/')}.log",
                lambda pod=pod: kubectl("logs", pod, "--all-containers", "--tail=2000", check=False),
            )
    return folder


def _write(path: Path, text: object) -> None:
    try:
        path.write_text(str(text() if callable(text) else text))
    except Exception as error:  # noqa: BLE001 -- a failed test is reported whatever else is broken
        path.write_text(f"not available: {error!r}")


def _member_lists(space: Space) -> str:
    lines: list[str] = []
    with Members() as members:
        for pod in space.api.all_of(resources.PODS, space.namespace):
            try:
                lines += [f"{pod['metadata']['name']}: {report}" for report in members.reports([pod])] or [
                    f"{pod['metadata']['name']}: no answer"
                ]
            except OperatorError as error:
                lines.append(f"{pod['metadata']['name']}: {error}")
    return "\n".join(lines)
