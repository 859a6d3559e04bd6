"""Two operators at once, as after a Lease that was lost unnoticed: one Job, one tool, the truth in status."""

from collections.abc import Callable
from typing import Any

import pytest

from unit.fakes.apiserver.kinds import CLAIMS, JOBS, REPLICA_SETS, SECRETS
from unit.reconcile.bench import Bench, bench
from unit.reconcile.bodies import BACKUPS, COREOS, ephemeral
from unit.reconcile.disturbance import AtNthWrite
from unit.reconcile.harness import Operator
from unit.reconcile.jobs import Jobs, backup
from unit.reconcile.test_backup_tool import BACKUP, CLAIM, TOOL, health


def applied(made: Bench, plural: str) -> list[Any]:
    """The names of the objects of this kind that were created."""
    return [
        each.request.body["metadata"]["name"]
        for each in made.writes()
        if each.request.plural == plural and each.request.method == "POST" and each.applied
    ]


def at_each_write(begin: Callable[[Bench], None], end: Callable[[Bench], None]) -> int:
    """After each write of the first operator the second one does all that it would; how many writes."""
    write, goes_on = 1, True
    while goes_on:
        with bench() as made:
            made.start()
            second = Operator(made.api, made.clock)
            try:

                def meanwhile(second: Operator = second) -> None:
                    while second.run_pass():
                        pass

                hook = AtNthWrite(write, meanwhile)
                hook.install(made, after=True)
                begin(made)
                end(made)
                goes_on = hook.has_fired
            finally:
                second.kill()
            write += 1
    return write - 1


@pytest.mark.exhaustive
def test_an_etcd_backup_is_one_job() -> None:
    def begin(made: Bench) -> None:
        made.create(*backup())

    def end(made: Bench) -> None:
        Jobs(made).until(lambda: made.status(BACKUPS, "one").get("phase") == "Completed")
        assert len(made.names(JOBS)) == 1
        assert len(set(applied(made, "jobs"))) == 1
        assert made.status(BACKUPS, "one")["revision"] == 7

    assert at_each_write(begin, end) > 3


@pytest.mark.exhaustive
def test_regular_backups_are_one_tool_with_one_token() -> None:
    def begin(made: Bench) -> None:
        made.create(*ephemeral(size=1, backup=BACKUP))

    def end(made: Bench) -> None:
        made.run_until(lambda: health(made)[0] == "True")
        for kind, name in ((REPLICA_SETS, TOOL), (SECRETS, TOOL), (CLAIMS, CLAIM)):
            assert made.names(kind) == [name]
            assert len(applied(made, kind.plural)) == 1
        assert made.status(COREOS)["backup"]["revision"] == 7

    assert at_each_write(begin, end) > 6
