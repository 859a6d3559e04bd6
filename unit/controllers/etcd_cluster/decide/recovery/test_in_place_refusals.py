"""Which requests for a restore in place are refused, and what the refusal offers instead."""

from dataclasses import replace

import msgspec
import pytest

from etcd_operator.api.persisted import Adoption, Upgrade
from etcd_operator.controllers.etcd_cluster.decide.actions import Stage
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.controllers.etcd_cluster.decide.recovery.in_place import refused, restore
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.controllers.etcd_cluster.decide.builders import (
    CLUSTER_ID,
    NAMES,
    VERSION,
    answering,
    claim,
    down,
    with_record,
)
from unit.controllers.etcd_cluster.decide.recovery.stored import (
    IN_PLACE,
    NAME,
    backup,
    live,
    remembering,
    sight,
)

UPGRADE = Upgrade(origin=VERSION, target="3.6.17", member="")
REFUSED = [
    pytest.param(live("one"), id="only the name of the backup"),
    pytest.param(live("feed/one/1"), id="another cluster"),
    pytest.param(live(f"{CLUSTER_ID}/one/2"), id="another attempt"),
    pytest.param(
        live("?", backups=sight(backup(), backup("two", time="2026-01-02T00:00:00Z"))),
        id="the newest is offered",
    ),
    pytest.param(live(NAME, backups=sight(is_listed=False)), id="not listed"),
    pytest.param(live(NAME, backups=sight(stored=())), id="no backup"),
    pytest.param(
        live(NAME, backups=sight(stored=(), unreadable="EtcdBackup one cannot be read (why)")),
        id="none that can be read",
    ),
    pytest.param(live(NAME, backups=sight(backup(etcd_version="3.4.30"))), id="too old a version"),
    pytest.param(live(NAME, backups=sight(backup(etcd_version="3.7.0"))), id="too new"),
    pytest.param(live(NAME, backups=sight(backup(etcd_version=""))), id="no version"),
]


@pytest.mark.parametrize("state", REFUSED)
def test_what_is_not_possible_is_refused_with_what_would_be(state: ClusterState) -> None:
    made = plan(state)

    assert (made.actions, made.stage) == ((), Stage.HELD)
    assert made.reason == "RestoreRefused"


def test_a_refusal_does_not_change_while_clients_write() -> None:
    state = live("one")
    written = answering(state, *state.by_name, revision=21)

    assert plan(replace(written, backups=sight(backup(age=3601)))) == plan(state)


def test_an_adoption_and_an_upgrade_come_first() -> None:
    adopting = with_record(live(NAME), adoption=Adoption(members=()))
    for state in (with_record(live(NAME), upgrade=UPGRADE), adopting):
        assert restore(state) is None
        assert refused(state) is not None


def test_it_does_not_begin_without_a_quorum() -> None:
    """The members that are silent may have newer writes, and no revision is known to give up."""
    minority = replace(down(live(NAME), *NAMES[1:]), has_quorum=False)
    made = plan(minority)
    assert (made.actions, made.reason) == ((), "QuorumLost")
    assert plan(replace(minority, has_quorum=True)).reason == "Restoring"


def test_an_etcdutl_that_cannot_raise_revisions_is_refused() -> None:
    state = answering(live(NAME), *NAMES, version="3.5.9")
    assert restore(state) is None
    assert refused(state) is not None


def test_nothing_is_reported_without_a_request_or_after_it_was_carried_out() -> None:
    assert plan(live()).reason == "Settled"
    done = remembering(live(NAME), msgspec.structs.replace(IN_PLACE, replaces=CLUSTER_ID))
    done = with_record(done, cluster_id="feed")
    assert refused(done) is None


def test_a_failed_attempt_is_reported_with_the_name_of_the_next() -> None:
    failed = msgspec.structs.replace(IN_PLACE, replaces="", failure="it is damaged")
    made = plan(remembering(live(NAME), failed))
    assert made.reason == "RestoreFailed"
    assert f"={CLUSTER_ID}/one/2" in made.message
    assert plan(remembering(live("one"), failed)).reason == "RestoreRefused"
    kept = (claim("db-9", given_up_by="of another one"), claim("db-4", given_up_by=NAME))
    made = plan(replace(remembering(live(NAME), failed), kept_claims=kept))
    assert "it is damaged; members had already been given up, and their" in made.message
    assert "are kept: db-4; to restore" in made.message


def test_the_number_of_an_attempt_is_above_those_that_a_deleted_cluster_had() -> None:
    """Its claims are kept, and would be taken for members that this attempt had given up."""
    names = (NAME, f"{CLUSTER_ID}/db-2/4", "x")
    kept = tuple(claim(f"db-{number}", given_up_by=name) for number, name in enumerate(names))
    offered = plan(replace(live(NAME), kept_claims=kept))
    assert offered.reason == "RestoreRefused"
    assert f"={CLUSTER_ID}/one/5" in offered.message
    assert plan(replace(live(f"{CLUSTER_ID}/one/5"), kept_claims=kept)).reason == "Restoring"
