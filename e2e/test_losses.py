"""A client writes all the time while members are lost: what is missing then is what the status reports."""

from contextlib import ExitStack

import pytest

from e2e.support.backups import OF_ONE_CLUSTER, await_backup
from e2e.support.checks import assert_at_rest, assert_consistent
from e2e.support.clusters import Document, ephemeral
from e2e.support.load import Load
from e2e.support.resizing import leaders_pod
from e2e.support.space import Space
from e2e.support.status import condition
from e2e.support.watching import watcher
from e2e.test_quorum_lost import NAME, await_loss, await_recovered, lose, names, pause, restart


def assert_reported(space: Space, document: Document, load: Load, reason: str) -> None:
    """The status names the source; each member has what that has, and what was written since."""
    recovery = space.status(document)["recovery"]
    reported = condition(space.stored(document), "DataLossPossible")
    assert (reported["status"], reported["reason"]) == ("True", reason)
    assert str(recovery["revision"]) in reported["message"], reported
    load.judge(space.testbed, space.addresses(document), recovery["revision"])
    assert recovery["replaces"] != assert_consistent(space, document)


@pytest.mark.parametrize(
    "is_survivor_newer",
    [pytest.param(True, id="newer-survivor"), pytest.param(False, id="newer-backup")],
)
def test_the_newer_of_survivor_and_backup_is_the_source(space: Space, is_survivor_newer: bool) -> None:
    """A backup is newer than a survivor that hung while the others were written to, and was restarted."""
    document = space.settled(ephemeral(backup=OF_ONE_CLUSTER))
    leader = leaders_pod(space, document)
    survivor = max(name for name in names(0, 1, 2) if name != leader)
    lost = [number for number in (0, 1, 2) if names(number) != [survivor]]

    def addresses() -> list[str]:
        pods = [pod for pod in space.pods(document) if pod["metadata"]["name"] != survivor]
        return [pod["status"]["podIP"] for pod in pods if pod["status"].get("podIP")]

    with Load(addresses) as load, ExitStack() as stack:
        watching = watcher(space, NAME)
        watching.await_event()
        if not is_survivor_newer:
            pause(space, document, is_paused=True)
            stack.enter_context(space.frozen(survivor))
        load.go_on()
        revision = await_backup(space, NAME, load.newest)
        load.go_on()
        if is_survivor_newer:
            lose(space, document, *lost)
        else:
            space.kubectl("delete", "pod", *names(*lost), "--now", "--wait=false")
            await_loss(space, document, *lost)
            restart(space, survivor)  # what it had not read from its peers' connections is gone with them
            stack.close()
            pause(space, document, is_paused=False)
        await_recovered(space, document)
        load.go_on()
    recovery = space.status(document)["recovery"]
    if is_survivor_newer:
        assert (recovery["source"]["name"], recovery["revision"] > revision) == (survivor, True)
    else:
        assert (recovery["source"]["type"], recovery["revision"] >= revision) == ("ToolBackup", True)
    assert_reported(
        space, document, load, "RecoveredFromSurvivor" if is_survivor_newer else "RecoveredFromBackup"
    )
    watching.await_compacted()
    assert_at_rest(space, 10)
