"""What is confirmed live of a survivor that answers nobody, and how a reader is added to its pod."""

from unittest.mock import Mock

import msgspec
import pytest

from etcd_operator.api.recoveries import OfflineSurvivor
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import AddReader, ConfirmLoss, ReadMember
from etcd_operator.controllers.etcd_cluster.recovery import readers
from etcd_operator.errors import Conflict, NotLeading, Unavailable
from etcd_operator.etcd.channel import Channels
from unit.controllers.etcd_cluster.decide.recovery.quorum_losses import RECOVERY
from unit.controllers.etcd_cluster.recovery.test_recovery_acts import Acts, made
from unit.etcd.conftest import channels
from unit.fakes.apiserver.faults import GIVES_RIGHT_ON_SECRETS, Answer, Request, no_right_on_secrets
from unit.fakes.apiserver.kinds import PODS, SECRETS
from unit.passes.bench import Bench
from unit.passes.etcds import sha256_of
from unit.passes.quorum_losses import lose

__all__ = ["channels", "made"]

NAME = "c-0002"
GONE = ("c-0000", "c-0001")


def restarted(made: Bench) -> None:
    """The only survivor: it restarts, and finds no quorum."""
    lose(made, 0, 1)
    made.world.restart("default", NAME)


def read(made: Bench, channels: Channels) -> Acts:
    """The operator after it has added a reader, and has seen it run."""
    restarted(made)
    Acts(made, channels).act(AddReader(name=NAME))
    made.world.settle()
    return Acts(made, channels)


def confirm(acts: Acts, sha256: str, *gone: str, backup: int = 0) -> None:
    member = ReadMember(name=NAME, uid=acts.uids[NAME], sha256=sha256)
    acts.act(ConfirmLoss(gone=gone, survivors=(), read=(member,), message="lost", below=backup))


def test_a_loss_is_confirmed_by_what_was_read(made: Bench, channels: Channels) -> None:
    acts = read(made, channels)
    confirm(acts, sha256_of(made.etcd.etcd), *GONE)
    assert acts.reported == ["QuorumLost"]


def test_data_that_has_changed_since_it_was_read_forbids_a_recovery(made: Bench, channels: Channels) -> None:
    acts = read(made, channels)
    before = sha256_of(made.etcd.etcd)
    made.etcd.put(b"other", b"value")
    with pytest.raises(Conflict, match="has changed since it was read"):
        confirm(acts, before, *GONE)


def test_a_reader_that_does_not_answer_forbids_a_recovery(made: Bench, channels: Channels) -> None:
    acts = read(made, channels)
    made.etcds.readers_fail = "no answer in time"
    with pytest.raises(Conflict, match="gives no report"):
        confirm(acts, sha256_of(made.etcd.etcd), *GONE)


def test_without_its_reader_nothing_is_known_of_it(made: Bench, channels: Channels) -> None:
    restarted(made)
    with pytest.raises(Conflict, match="is not read any more"):
        confirm(Acts(made, channels), sha256_of(made.etcd.etcd), *GONE)


def test_its_own_list_must_not_have_a_majority_that_may_live(made: Bench, channels: Channels) -> None:
    acts = read(made, channels)
    with pytest.raises(Conflict, match="may still elect a leader"):
        confirm(acts, sha256_of(made.etcd.etcd), "c-0000")


def test_it_is_not_given_up_for_a_backup_that_has_no_more(made: Bench, channels: Channels) -> None:
    acts = read(made, channels)
    revision = made.etcd.etcd.revision
    with pytest.raises(Conflict, match="has reached revision"):
        confirm(acts, sha256_of(made.etcd.etcd), *GONE, backup=revision)
    confirm(acts, sha256_of(made.etcd.etcd), *GONE, backup=revision + 1)


def test_a_second_reader_is_not_added_while_one_runs(made: Bench, channels: Channels) -> None:
    acts = read(made, channels)
    acts.act(AddReader(name=NAME))
    assert [c["name"] for c in made.get(PODS, NAME)["spec"]["ephemeralContainers"]] == ["survivor-reader-1"]
    assert acts.reported == []


def test_another_pod_of_that_name_gets_no_reader(made: Bench, channels: Channels) -> None:
    restarted(made)
    acts = Acts(made, channels)
    pod = made.get(PODS, NAME)
    made.delete(PODS, NAME, grace=0)
    fresh = {key: pod["metadata"][key] for key in ("name", "labels", "annotations", "ownerReferences")}
    made.create(PODS, {"metadata": fresh, "spec": {"containers": pod["spec"]["containers"]}})
    with pytest.raises(Conflict, match="has changed"):
        acts.act(AddReader(name=NAME))


def refusing(made: Bench, code: int, reason: str) -> None:
    """The API server adds no container to a pod."""

    def refuse(request: Request) -> Answer | None:
        if request.subresource != "ephemeralcontainers":
            return None
        return Answer(code=code, reason=reason, message="a policy forbids it")

    made.api.before = refuse


def test_a_reader_that_is_refused_is_no_failure_of_the_pass(made: Bench, channels: Channels) -> None:
    restarted(made)
    refusing(made, 403, "Forbidden")
    acts = Acts(made, channels)
    acts.act(AddReader(name=NAME))
    assert acts.reported == ["SecretCreated"]
    ((uid, problem),) = acts.refused
    assert uid == acts.uids[NAME]
    assert "a policy forbids it" in problem


def test_a_reader_without_the_right_on_its_secret_is_refused_with_the_command_that_gives_it(
    made: Bench, channels: Channels
) -> None:
    restarted(made)
    made.api.before = no_right_on_secrets
    acts = Acts(made, channels)
    acts.act(AddReader(name=NAME))
    ((_, problem),) = acts.refused
    assert problem.endswith(GIVES_RIGHT_ON_SECRETS)


def test_a_secret_of_somebody_else_refuses_the_reader(made: Bench, channels: Channels) -> None:
    restarted(made)
    made.create(SECRETS, {"metadata": {"name": "c-survivor-reader"}})
    acts = Acts(made, channels)
    acts.act(AddReader(name=NAME))
    ((_, problem),) = acts.refused
    assert "Secret c-survivor-reader belongs to somebody else" in problem
    assert "ephemeralContainers" not in made.get(PODS, NAME)["spec"]


def test_a_webhook_that_fails_counts_as_a_refusal_once_that_has_lasted(
    made: Bench, channels: Channels
) -> None:
    restarted(made)
    refusing(made, 500, "InternalError")
    acts = Acts(made, channels)
    with pytest.raises(Unavailable):
        acts.act(AddReader(name=NAME))
    assert acts.refused == []
    acts.has_lasted = True
    acts.act(AddReader(name=NAME))
    assert [uid for uid, _ in acts.refused] == [acts.uids[NAME]]


def test_an_operator_that_may_not_write_was_refused_nothing(
    made: Bench, channels: Channels, monkeypatch: pytest.MonkeyPatch
) -> None:
    restarted(made)
    acts = Acts(made, channels)
    acts.has_lasted = True
    monkeypatch.setattr(readers, "_add", Mock(side_effect=NotLeading("the Lease is in doubt")))
    with pytest.raises(NotLeading):
        acts.act(AddReader(name=NAME))
    assert acts.refused == []


def test_one_that_answers_again_after_its_reader_has_ended_keeps_its_cluster(
    made: Bench, channels: Channels
) -> None:
    """A reader ends when its member follows a leader, which the last probe may not have seen."""
    recovery = msgspec.structs.replace(RECOVERY, source=OfflineSurvivor(name=NAME, sha256="ab" * 32))
    with pytest.raises(Conflict, match="answers again"):
        Acts(made, channels, recovery).assert_as_read()
    restarted(made)
    Acts(made, channels, recovery).assert_as_read()
