"""What keeps a cluster from being backed up, and what its status reports then."""

from collections.abc import Callable
from typing import Any

import pytest

from unit.controllers.backup_tool.test_backup_tool import (
    BACKUP,
    CLAIM,
    INTERVAL,
    LABELS,
    TOOL,
    ask,
    health,
    made,
    runs,
)
from unit.controllers.backup_tool.test_backup_tool_deletion import finalizers
from unit.fakes.apiserver.faults import (
    GIVES_RIGHT_ON_SECRETS,
    Answer,
    Fault,
    Request,
    no_fault,
    no_right_on_secrets,
)
from unit.fakes.apiserver.kinds import CLAIMS, PODS, REPLICA_SETS, SECRETS, SERVICES
from unit.passes.bench import Bench, bench
from unit.passes.bodies import COREOS, ephemeral
from unit.passes.tools import failing, stored

__all__ = ["made"]


def test_backups_that_fail_for_two_intervals_are_unhealthy_and_report_why(made: Bench) -> None:
    why = failing("BucketMissing", "The bucket b does not exist.")
    made.tools.report = stored(since=INTERVAL * 1.0, failure=why)
    made.wait(60.0)
    assert health(made) == ("True", "BackedUp")
    made.tools.report = stored(since=INTERVAL * 2.0 + 1, failure=why)
    made.run_until(lambda: health(made) == ("False", "BucketMissing"))
    message = made.condition(COREOS, "BackupHealthy")["message"]
    assert message == "the last success is more than 1200 seconds ago: The bucket b does not exist."
    made.settle()
    made.rest()
    made.tools.report = stored(revision=8)
    made.run_until(lambda: health(made)[0] == "True")
    assert {"BackupUnhealthy", "BackupHealthy"} <= set(made.event_reasons())


def test_a_tool_that_does_not_answer_is_believed_for_two_intervals(made: Bench) -> None:
    made.tools.problem = "Connection refused"
    made.wait(INTERVAL * 2 - 120)
    assert health(made) == ("True", "BackedUp")
    made.run_until(lambda: health(made) == ("False", "ToolUnreachable"))
    assert made.status(COREOS)["backup"]["revision"] == 7
    made.settle()
    made.rest()


def test_after_a_restart_of_the_operator_the_newest_backup_counts(made: Bench) -> None:
    made.tools.problem = "Connection refused"
    made.restart()
    made.wait(60.0)
    assert health(made) == ("True", "BackedUp")
    made.rest()


def test_a_token_that_is_refused_is_read_again(made: Bench) -> None:
    made.tools.refused_token = made.tools.asked[-1][1]
    made.delete(SECRETS, TOOL)
    made.run_until(lambda: made.tools.asked[-1][1] != made.tools.refused_token)
    made.run_until(lambda: health(made)[0] == "True")


def test_members_are_served_although_backups_cannot_be() -> None:
    with bench() as made:
        made.create(REPLICA_SETS, {"metadata": {"name": TOOL}, "spec": _foreign()})
        made.start()
        made.create(*ephemeral(size=1, backup=BACKUP))
        made.settle()
        made.run_until(lambda: health(made) == ("Unknown", "NameConflict"))
        assert "belongs to somebody else" in made.condition(COREOS, "BackupHealthy")["message"]
        made.edit(COREOS, "c", {"spec": {"size": 3}})
        made.settle()
        assert made.status(COREOS)["size"] == 3


def _foreign() -> dict[str, Any]:
    labels = {"app": "other"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "x", "image": "x"}]}}
    return {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}


def test_a_claim_of_somebody_else_is_not_used() -> None:
    with bench() as made:
        requests = {"requests": {"storage": "1Gi"}}
        made.create(CLAIMS, {"metadata": {"name": CLAIM}, "spec": {"resources": requests}})
        made.start()
        made.create(*ephemeral(size=1, backup=BACKUP))
        made.run_until(lambda: health(made) == ("Unknown", "NameConflict"))
        assert TOOL not in made.names(REPLICA_SETS)
        made.edit(CLAIMS, CLAIM, {"metadata": {"labels": LABELS}})
        made.run_until(lambda: health(made)[0] == "True")


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_missing_right_on_secrets_is_reported_with_the_command_that_gives_it(method: str) -> None:
    with bench() as made:
        made.api.before = lambda request: no_right_on_secrets(request) if request.method == method else None
        made.start()
        made.create(*ephemeral(size=1, backup=BACKUP))
        made.run_until(lambda: health(made) == ("Unknown", "Forbidden"))
        message = made.condition(COREOS, "BackupHealthy")["message"]
        assert message.endswith(GIVES_RIGHT_ON_SECRETS)
        made.settle()
        made.api.before = no_fault
        made.run_until(lambda: health(made)[0] == "True")


def test_an_invalid_policy_is_reported_and_changes_nothing(made: Bench) -> None:
    ask(made, {"storageType": "S3"})
    made.run_until(lambda: health(made) == ("False", "InvalidSpec"))
    assert runs(made)
    made.settle()
    made.rest()


def test_a_recovery_beside_an_invalid_policy_takes_the_survivor(made: Bench) -> None:
    """No tool will answer: the definition of another version of the operator let the policy in."""
    made.edit(COREOS, "c", {"spec": {"size": 3}})
    made.settle()
    made.edit(COREOS, "c", {"spec": {"backup": {"maxBackups": 3, "storageType": "S3"}}})
    made.edit(COREOS, "c", {"status": {"backup": None}}, subresource="status")
    made.run_until(lambda: health(made) == ("False", "InvalidSpec"))
    for member in ("c-0000", "c-0001"):
        made.delete(PODS, member)
    made.world.settle()
    made.wait(20.0)
    assert "recovery" not in made.status(COREOS)
    made.wait(15.0)
    made.settle()
    assert made.status(COREOS)["recovery"]["source"]["name"] == "c-0002"


def test_a_spec_that_is_wrong_elsewhere_changes_nothing(made: Bench) -> None:
    made.edit(COREOS, "c", {"spec": {"version": "latest"}})
    made.drain()
    made.delete(SERVICES, TOOL)
    made.wait(30.0)
    assert TOOL not in made.names(SERVICES)
    assert health(made) == ("True", "BackedUp")
    made.edit(COREOS, "c", {"spec": {"version": None}})
    made.run_until(lambda: TOOL in made.names(SERVICES))


def refusing(code: int, is_it: Callable[[Request], bool]) -> Callable[[Request], Fault | None]:
    """Refuse some writes, as where a right is missing (403) or a policy forbids them (422)."""

    def refuse(request: Request) -> Fault | None:
        if request.method == "GET" or not is_it(request):
            return None
        return Answer(code=code, reason="Forbidden" if code == 403 else "Invalid", message="policy")

    return refuse


@pytest.mark.parametrize("plural", ["persistentvolumeclaims", "etcdclusters"])
@pytest.mark.parametrize("code", [403, 422])
def test_a_deleted_cluster_goes_once_what_was_refused_is_allowed(made: Bench, plural: str, code: int) -> None:
    """No event leads to the next pass: a right, or a policy, is no object of the cluster."""
    ask(made, {"cleanupBackupsOnClusterDelete": True})
    made.run_until(lambda: finalizers(made) != [])
    made.settle()
    made.delete(COREOS, "c")
    made.api.before = refusing(code, lambda r: r.plural == plural and not r.path.endswith("/status"))
    made.wait(60.0)
    assert made.names(COREOS) == ["c"]

    made.api.before = no_fault
    made.wait(3600.0)
    assert made.names(COREOS) == []


def test_the_tool_is_asked_again_after_a_status_was_refused(made: Bench) -> None:
    made.api.before = refusing(403, lambda r: r.plural == "etcdclusters" and r.path.endswith("/status"))
    made.tools.report = stored(revision=9, count=2)
    made.wait(1500.0)

    made.api.before = no_fault
    made.wait(1500.0)
    assert made.status(COREOS)["backup"]["revision"] == 9
