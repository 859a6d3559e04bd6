"""Two operators at once, as after a Lease that was lost unnoticed: one Job, one tool, the truth in status."""

import pytest

from unit.controllers.backup_tool.test_backup_tool import BACKUP, CLAIM, TOOL, health
from unit.fakes.apiserver.kinds import CLAIMS, JOBS, REPLICA_SETS, SECRETS
from unit.passes.bench import Bench
from unit.passes.bodies import BACKUPS, COREOS, ephemeral
from unit.passes.jobs import Jobs, backup
from unit.passes.two_operators import applied, at_each_write


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
