"""The documents' disaster recovery: most pods of a cluster with backups are deleted, then all of them."""

import json

import pytest

from e2e.support.checks import assert_at_rest, assert_consistent, assert_nothing_doubled
from e2e.support.clusters import Document, ephemeral
from e2e.support.shell import NAME as SHELL
from e2e.support.shell import etcdctl_in_shell, start_shell
from e2e.support.space import Space
from e2e.support.status import condition
from e2e.support.testbed import ROOT
from e2e.support.waiting import LONG, answered, wait_until
from e2e.test_backup_tool import token_of, wait_healthy

EXAMPLE = ROOT / "manifests" / "examples" / "example-etcd-cluster-with-backup.yaml"
NAME = "etcd-cluster-with-backup"


def rows(space: Space) -> dict[str, tuple[str, str]]:
    """READY and STATUS of each pod of a member."""
    table = space.kubectl.table("get", "pods")
    return {
        row["NAME"]: (row["READY"], row["STATUS"])
        for row in table
        if row["NAME"].startswith(NAME) and "backup-tool" not in row["NAME"]
    }


def names(*numbers: int) -> list[str]:
    return [f"{NAME}-{number:04}" for number in numbers]


def created(space: Space) -> Document:
    """The example, backed up, with what the document writes."""
    start_shell(space)
    space.kubectl("create", "-f", str(EXAMPLE))
    document = ephemeral(NAME)
    space.wait_serving(document)
    wait_healthy(space, document)
    put = etcdctl_in_shell(space, "--endpoints", f"http://{NAME}-0002:2379", "put", "foo", "bar")
    assert "OK" in put
    return document


def back_up(space: Space) -> int:
    """Take a backup; its revision."""
    header = f"Authorization: Bearer {token_of(space, NAME)}"
    url = f"http://{NAME}-backup-tool:19999/backupnow"
    take = ("exec", SHELL, "--", "wget", "-q", "-O", "-", "--header", header, url)
    taken = json.loads(answered(lambda: space.kubectl(*take), "a backup is taken"))
    return int(taken["newest"]["revision"])


def await_seed(space: Space, seed: str) -> None:
    """See the seed as the document shows it."""
    seen: list[tuple[str, str]] = []

    def is_seen() -> bool:
        seen.append(rows(space).get(seed, ("", "")))
        return seen[-1][1] == "Init:0/2"

    wait_until(is_seen, LONG, lambda: f"{seed} is Init:0/2, seen {set(seen)}", every=0.05)


def await_members(space: Space, document: Document, *numbers: int) -> None:
    expected = dict.fromkeys(names(*numbers), ("1/1", "Running"))
    wait_until(lambda: rows(space) == expected, LONG, lambda: f"{expected}, now {rows(space)}", every=0.5)
    space.wait_settled(document)
    assert_consistent(space, document)
    found = etcdctl_in_shell(space, "--endpoints", f"http://{NAME}:2379", "get", "foo", "--print-value-only")
    assert found.strip() == "bar"


def test_all_pods_deleted_together_are_restored_from_the_newest_backup(space: Space) -> None:
    document = created(space)
    revision = back_up(space)
    before = space.status(document)["clusterID"]
    space.kubectl("delete", "pod", *names(0, 1, 2), "--now")
    await_seed(space, names(3)[0])
    await_members(space, document, 3, 4, 5)

    status = space.status(document)
    recovery = status["recovery"]
    assert (recovery["survivor"], recovery["revision"], recovery["replaces"]) == ("", revision, before)
    loss = condition(space.stored(document), "DataLossPossible")
    assert (loss["status"], loss["reason"]) == ("True", "RecoveredFromBackup")
    assert recovery["backup"]["name"] in loss["message"]
    assert recovery["backup"]["time"] in loss["message"]
    warnings = ("QuorumLost", "RecoveryStarted", "Recovered")
    space.wait_events(NAME, *(("Warning", reason) for reason in warnings))
    assert_nothing_doubled(space, document, members=names(3, 4, 5))
    assert back_up(space) > 1_000_000_000
    assert_at_rest(space, 10)


@pytest.mark.long
def test_two_of_three_pods_deleted_as_the_document_does(space: Space) -> None:
    document = created(space)
    space.kubectl("delete", "pod", *names(0, 1), "--now")
    await_seed(space, names(3)[0])
    await_members(space, document, 3, 4, 5)
    loss = condition(space.stored(document), "DataLossPossible")
    assert (loss["status"], loss["reason"]) == ("True", "RecoveredFromSurvivor")
