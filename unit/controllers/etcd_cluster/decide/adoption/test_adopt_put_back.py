"""spec.adopt is missing in a resource that was created again during an adoption, or is put back."""

from dataclasses import replace

from etcd_operator.api.persisted import Adoption, Bootstrap
from etcd_operator.controllers.etcd_cluster.decide.actions import Remember, Stage
from etcd_operator.controllers.etcd_cluster.decide.adoption import external_answers
from etcd_operator.controllers.etcd_cluster.decide.plan import plan
from etcd_operator.etcd.values import EtcdMember
from unit.controllers.etcd_cluster.decide.adoption.adoptions import offered
from unit.controllers.etcd_cluster.decide.adoption.test_adopt_again import SILENT, recorded, resumed
from unit.controllers.etcd_cluster.decide.builders import (
    NAMES,
    TOKEN,
    bootstrapped,
    changed,
    first_recovery,
    with_record,
)
from unit.controllers.etcd_cluster.decide.recovery import manual_recoveries as persistents
from unit.controllers.etcd_cluster.decide.recovery.automatics import listing


def test_without_spec_adopt_a_person_is_asked_to_put_it_back() -> None:
    state = resumed(ours=2, adopt=None)
    assert external_answers.endpoints(state.desired) == ()
    assert recorded(state) is None

    forgotten = with_record(
        resumed(ours=2, adopt=None, replies=dict.fromkeys(range(3), SILENT)), adoption=None
    )
    assert plan(forgotten).reason == "UnknownMember"
    assert "set spec.adopt again" in plan(forgotten).message
    asked = replace(forgotten.desired, adopt=offered(3).desired.adopt)
    assert recorded(replace(forgotten, desired=asked)) == Adoption(members=())


def test_external_members_are_asked_for_where_nobody_lists_them_without_a_quorum() -> None:
    """A survivor that answers nobody, and is read, lists them: no recovery is considered any more."""
    lost = with_record(persistents.lost(), bootstrap=Bootstrap(members=(), token=TOKEN))
    asked = replace(lost, desired=replace(lost.desired, adopt=offered(3).desired.adopt))
    assert recorded(asked) == Adoption(members=())
    assert plan(with_record(asked, adoption=Adoption(members=()))).reason == "AdoptionUnclear"
    ours = replace(persistents.lost(), desired=replace(persistents.lost().desired, adopt=asked.desired.adopt))
    assert plan(ours).reason == "QuorumLost"


def test_who_else_votes_is_named_where_a_recovery_is_offered() -> None:
    state = listing(persistents.lost(), "old-0")
    resumed_on_claims = with_record(state, bootstrap=Bootstrap(members=(), token=TOKEN))
    back = "if this resource was created again during an adoption, set spec.adopt again instead"

    assert "db-1 (silent), old-0 (not a member of this resource): no quorum" in plan(state).message
    assert back not in plan(state).message
    assert back in plan(resumed_on_claims).message


def test_where_the_api_server_refuses_spec_adopt_nobody_is_asked_to_put_it_back() -> None:
    forgotten = with_record(
        resumed(ours=2, adopt=None, replies=dict.fromkeys(range(3), SILENT)), adoption=None
    )
    bootstrap = Bootstrap(members=("db-0",), token=TOKEN)
    for record in ({"bootstrap": bootstrap}, {"bootstrap": None}, {"recovery": first_recovery("db-3")}):
        made = plan(with_record(forgotten, **record))
        assert made.reason == "UnknownMember"
        assert "set spec.adopt again" not in made.message


def test_spec_adopt_without_effect_is_reported() -> None:
    state = with_record(bootstrapped(), bootstrap=Bootstrap(members=(), token=TOKEN))
    asked = replace(state, desired=replace(state.desired, adopt=offered().desired.adopt))

    assert (plan(asked).actions, plan(asked).reason) == ((), "AdoptionRefused")
    assert plan(state).stage is Stage.SETTLED
    assert plan(with_record(asked, adoption=Adoption(members=(), finished=True))).stage is Stage.SETTLED


def test_spec_adopt_of_a_cluster_that_adopts_nothing_changes_nothing() -> None:
    state = with_record(resumed(ours=3, left=0), adoption=None)
    assert not any(isinstance(action, Remember) for action in plan(state).actions)
    unknown = (EtcdMember(id="id-x", name="x", peer_urls=("http://x:2380",)),)
    not_annotated = changed(state, "db-0", claim=None)
    for name in NAMES[1:]:
        not_annotated = changed(not_annotated, name, claim=None)
    assert plan(replace(not_annotated, unknown_members=unknown)).reason == "UnknownMember"
