"""What the name of a recovery means, also where a person has written something else."""

import msgspec
import pytest

from etcd_operator.api.recoveries import Recovery, StoredBackup
from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts
from etcd_operator.controllers.etcd_cluster.decide.recovery.entry import (
    claims_kept_by,
    cluster_id_in,
    generation_in,
    recovery_name,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.texts import of_replaced
from unit.controllers.etcd_cluster.decide.builders import first_recovery

SURVIVOR = first_recovery("db-3", "db-1", generation=12, replaces="abc")
BACKUP = first_recovery(
    "db-3",
    generation=3,
    replaces="abc",
    source=StoredBackup(cluster="db", name="nightly", url="s3://b/one.db", spec={}),
)


@pytest.mark.parametrize(
    ("recovery", "name"),
    [
        pytest.param(SURVIVOR, "abc/db-1/12", id="from a survivor"),
        pytest.param(BACKUP, "abc/backup:nightly/3", id="from a backup"),
    ],
)
def test_a_name_has_the_cluster_the_source_and_the_generation(recovery: Recovery, name: str) -> None:
    assert recovery_name(recovery) == name
    assert (cluster_id_in(name), generation_in(name)) == ("abc", recovery.generation)


def test_what_is_restored_in_place_was_not_lost() -> None:
    assert of_replaced(SURVIVOR) == " of the cluster that was lost"
    in_place = msgspec.structs.replace(BACKUP, authority="InPlace")
    assert of_replaced(in_place) == " of the cluster before the restore"


@pytest.mark.parametrize("text", ["", "abc", "abc/db-1/", "abc/db-1/x", "abc/db-1/-1"])
def test_a_text_that_is_no_name_has_no_generation(text: str) -> None:
    assert generation_in(text) == 0


def test_claims_are_kept_by_the_recovery_that_gave_up_their_members() -> None:
    kept = [
        ClaimFacts(name=name, uid=name, given_up_by=given_up)
        for name, given_up in (("db-2", "abc/db-1/12"), ("db-0", "abc/db-1/12"), ("db-1", "abc/db-1/11"))
    ]

    assert claims_kept_by("abc/db-1/12", kept) == ["db-0", "db-2"]
