"""One controller writes the status of a kind of object: two would conflict as a matter of course."""

import ast
from collections.abc import Iterator
from pathlib import Path

import etcd_operator

ROOT = Path(etcd_operator.__file__).parent


def calls(path: Path) -> Iterator[ast.Call]:
    """All calls in a module."""
    return (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))


def test_each_status_has_one_writer() -> None:
    """EtcdClusters of both groups share theirs; what others report of them is handed over to it."""
    found = sorted(
        (str(path.relative_to(ROOT / "controllers")), ast.unparse(call.args[0]))
        for path in ROOT.rglob("*.py")
        for call in calls(path)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "write_status"
    )
    assert found == [
        ("etcd_auth/reporter.py", "resource"),  # of EtcdRoles and EtcdUsers
        ("etcd_backup/reconciler.py", "resources.BACKUPS"),
        ("etcd_backup_schedule/reconciler.py", "resources.SCHEDULES"),
        ("etcd_cluster/peer_status.py", "resources.PEERS"),
        ("etcd_cluster/reconciler.py", "resource"),  # of the clusters of its group
        ("etcd_restore/reconciler.py", "resources.RESTORES"),
    ]


def test_nothing_else_writes_a_status() -> None:
    """But for pods, whose readiness gates the operator sets."""
    found = {
        str(path.relative_to(ROOT / "controllers"))
        for path in ROOT.rglob("*.py")
        for call in calls(path)
        for keyword in call.keywords
        if keyword.arg == "subresource" and ast.unparse(keyword.value) == "'status'"
    }
    assert found == {"etcd_cluster/observe/readiness.py", "shared/objects.py"}
