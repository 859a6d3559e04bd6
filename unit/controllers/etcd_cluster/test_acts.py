"""Acts on a world that is not, or not any more, as the plan saw it: it is left alone."""

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from etcd_operator.api.persisted import Bootstrap
from etcd_operator.controllers.etcd_cluster.decide.actions import (
    Action,
    AddLearner,
    ChangeStorage,
    ConfirmClaimsLost,
    CreateMember,
    DeleteMember,
    Promote,
    RecreatePod,
    RemoveMember,
    ReplaceMember,
    SetExistingOnly,
)
from etcd_operator.controllers.etcd_cluster.decide.starts import Bootstrapping
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.errors import Conflict, Unavailable
from etcd_operator.etcd.channel import Channels
from etcd_operator.keys import Key
from unit.fakes.apiserver import Kind
from unit.fakes.apiserver.faults import Request, no_fault
from unit.fakes.apiserver.kinds import CLAIMS, PODS
from unit.passes.bench import Bench, bootstrapped
from unit.passes.bodies import COREOS, IMPROBABLE, PEERS, ephemeral, persistent

KEY = Key("default", "c")


class Acts:
    """The acting part of the operator, on what it sees when this is made."""

    def __init__(self, made: Bench, kind: Kind) -> None:
        assert made.operator is not None
        group = next(group for group in made.operator.groups if group.name == kind.group)
        reconciler: Any = group.controllers[0].reconcile
        self._of = reconciler.__self__
        made.operator.catch_up()
        observer, cluster = self._of.observer, self._of.caches.clusters.store.get(KEY)
        state = None
        while state is None:
            state = observer.observe(KEY, cluster, is_fresh=observer.is_fresh(KEY))
            made.operator.catch_up()
        self.state: ClusterState = state
        self.reported: list[str] = []

    def act(self, action: Action) -> None:
        self._of.actor.act(self.state, action, lambda reason, _: self.reported.append(reason))

    def remember(self, **changes: Any) -> None:
        """Let the plan rest on another persisted state."""
        persisted = replace(self.state.persisted, **changes)
        self.state = replace(self.state, desired=replace(self.state.desired, persisted=persisted))

    def remove(self, name: str) -> None:
        self.act(RemoveMember(name=name, member_id=self.state.by_name[name].id))


def _forget(made: Bench, name: str) -> None:
    """Another removal takes effect: of an earlier call whose outcome nobody knows, or of a person."""
    etcd = made.etcd.etcd
    with etcd.changed:
        etcd.remove(next(member for member in etcd.members if member.name != name), etcd.member(name).id)


def _names(made: Bench) -> list[str]:
    return sorted(member.name for member in made.etcd.etcd.members)


@pytest.mark.parametrize(
    ("body", "gone", "target"),
    [
        pytest.param(persistent(size=4), "c-1", "c-3", id="persistent"),
        pytest.param(ephemeral(size=4), "c-0003", "c-0000", id="ephemeral"),
    ],
)
def test_no_second_member_is_removed_before_the_first_removal_was_seen(
    body: tuple[Kind, Any], gone: str, target: str
) -> None:
    with bootstrapped(*body) as made:
        acts = Acts(made, body[0])
        _forget(made, gone)
        left = _names(made)

        with pytest.raises(Conflict, match="members have changed"):
            acts.remove(target)
        assert _names(made) == left

        acts.remove(gone)  # it is done, whoever did it
        assert _names(made) == left


@pytest.mark.parametrize(
    ("kind", "body"), [persistent(size=3), ephemeral(size=3)], ids=["persistent", "ephemeral"]
)
def test_no_member_is_removed_that_leads_since_the_observation(kind: Kind, body: Any) -> None:
    """It was silent, came back and won an election: its leadership is moved first."""
    with bootstrapped(kind, body) as made:
        acts = Acts(made, kind)
        etcd = made.etcd.etcd
        with etcd.changed:
            target = next(member for member in etcd.members if member is not etcd.leader)
            etcd.leader = target
        with pytest.raises(Conflict, match=f"{target.name} leads now"):
            acts.remove(target.name)
        assert target.name in _names(made)


@pytest.mark.parametrize(
    ("kind", "body", "target", "holder"),
    [
        pytest.param(*persistent(size=3), "c-2", CLAIMS, id="persistent"),
        pytest.param(*ephemeral(size=3), "c-0000", PODS, id="ephemeral"),
    ],
)
def test_no_member_is_removed_while_another_one_is_being_deleted(
    kind: Kind, body: Any, target: str, holder: Kind
) -> None:
    """Two voters would be left, one of which is about to end, and with it the quorum."""
    with bootstrapped(kind, body) as made:
        acts = Acts(made, kind)
        other = next(name for name in _names(made) if name != target)
        made.edit(holder, other, {"metadata": {"finalizers": ["test/held"]}})
        made.delete(holder, other)
        with pytest.raises(Conflict, match=f"{other} is being deleted"):
            acts.remove(target)
        assert target in _names(made)


@pytest.mark.parametrize(
    ("kind", "body"), [persistent(size=3), ephemeral(size=3)], ids=["persistent", "ephemeral"]
)
@pytest.mark.parametrize("is_silent", [False, True], ids=["healthy", "silent"])
def test_no_member_is_stopped_while_another_one_is_being_deleted(
    kind: Kind, body: Any, is_silent: bool
) -> None:
    """An upgrade that goes on would have two of three away.

    One that the operator does not reach may be part of the quorum that answers.
    """
    with bootstrapped(kind, body) as made:
        acts = Acts(made, kind)
        other, *_, last = acts.state.members
        if is_silent:
            silent = replace(last, answer=None)
            acts.state = replace(acts.state, members=(*acts.state.members[:-1], silent))
        assert other.pod is not None
        made.edit(PODS, other.pod.name, {"metadata": {"finalizers": ["test/held"]}})
        made.delete(PODS, other.pod.name)
        before = made.objects(), made.api.objects.select(PODS)
        with pytest.raises(Conflict, match=f"{other.name} is being deleted"):
            acts.act(ReplaceMember(name=last.name, version="3.6.17"))
        assert (made.objects(), made.api.objects.select(PODS)) == before


def test_a_member_that_another_operator_has_restarted_since_is_not_restarted() -> None:
    """The act is late: the version in the spec has changed since, and another member may be away by now."""
    with bootstrapped(*ephemeral(size=3)) as made:
        acts = Acts(made, COREOS)
        made.edit(PODS, "c-0002", {"metadata": {"annotations": {"etcd.version": "3.6.18"}}})
        before = made.api.objects.select(PODS)
        with pytest.raises(Conflict, match="has changed since it was observed"):
            acts.act(ReplaceMember(name="c-0002", version="3.6.17"))
        made.delete(PODS, "c-0002", grace=0)
        with pytest.raises(Conflict, match="has changed since it was observed"):
            acts.act(ReplaceMember(name="c-0002", version="3.6.17"))
        assert made.api.objects.select(PODS) == before[:2]


def test_a_restart_that_arrives_late_is_refused() -> None:
    """It was sent before another operator restarted the member: nobody can take it back."""
    with bootstrapped(*ephemeral(size=3)) as made:
        acts = Acts(made, COREOS)

        def overtaking(request: Request) -> None:
            if request.plural == "pods" and request.method == "PATCH":
                made.api.before = no_fault
                made.edit(PODS, "c-0002", {"metadata": {"annotations": {"etcd.version": "3.6.18"}}})

        made.api.before = overtaking
        with pytest.raises(Conflict):
            acts.act(ReplaceMember(name="c-0002", version="3.6.17"))
        assert made.get(PODS, "c-0002")["metadata"]["annotations"]["etcd.version"] == "3.6.18"


@pytest.mark.parametrize(
    ("kind", "body"), [persistent(size=3), ephemeral(size=3)], ids=["persistent", "ephemeral"]
)
def test_no_learner_is_promoted_that_is_being_deleted(kind: Kind, body: Any) -> None:
    """It would be a voter that ends at once: of a cluster of one that costs the quorum."""
    with bootstrapped(kind, body) as made:
        acts = Acts(made, kind)
        last = acts.state.members[-1]
        assert last.pod is not None
        made.edit(PODS, last.pod.name, {"metadata": {"finalizers": ["test/held"]}})
        made.delete(PODS, last.pod.name)
        with pytest.raises(Conflict, match=f"{last.name} is being deleted"):
            acts.act(Promote(name=last.name, member_id=last.id))


@pytest.mark.parametrize("has_certificate", [False, True])
def test_with_a_certificate_a_learner_is_promoted_only_through_the_leader(*, has_certificate: bool) -> None:
    """As its user, a follower does not answer. Otherwise it forwards the request to the leader."""
    with bootstrapped(*ephemeral(size=3)) as made:
        acts = Acts(made, COREOS)
        leader = acts.state.leader
        assert leader is not None
        members = tuple(replace(m, answer=None) if m is leader else m for m in acts.state.members)
        acts.state = replace(acts.state, members=members)
        last = next(m for m in reversed(members) if m.answer is not None)
        promote = Promote(name=last.name, member_id=last.id)
        if not has_certificate:
            acts.act(promote)
            return
        with (
            patch.object(Channels, "credentials", object()),
            pytest.raises(Unavailable, match="the leader does not answer"),
        ):
            acts.act(promote)


def test_no_member_is_added_to_a_list_that_has_changed() -> None:
    with bootstrapped(*ephemeral(size=3)) as made:
        acts = Acts(made, COREOS)
        _forget(made, "c-0001")

        with pytest.raises(Conflict, match="members have changed"):
            acts.act(AddLearner(name="c-0003"))
        assert _names(made) == ["c-0000", "c-0002"]


@pytest.mark.parametrize("action", [DeleteMember(name="c-2"), AddLearner(name="c-3")], ids=["delete", "add"])
def test_no_member_is_changed_by_the_list_of_another_cluster(action: Action) -> None:
    """Of one that a recovery gave up, whose members still run."""
    with bootstrapped(*persistent(size=3)) as made:
        acts = Acts(made, IMPROBABLE)
        _forget(made, "c-2")
        acts.remember(cluster_id="beef")
        before = made.objects()

        with pytest.raises(Conflict, match="another etcd cluster answers"):
            acts.act(action)
        assert (made.objects(), _names(made)) == (before, ["c-0", "c-1"])


def test_the_claim_of_a_peer_that_was_made_again_is_not_lost() -> None:
    """By the name alone the finalizer would come to the new one, and its claim would go with it some day."""
    with bootstrapped(*persistent(size=3)) as made:
        acts = Acts(made, IMPROBABLE)
        _forget(made, "c-2")
        old = made.get(PEERS, "c-2")
        made.delete(PEERS, "c-2")
        made.world.settle()
        again = {"name": "c-2", "ownerReferences": old["metadata"]["ownerReferences"]}
        made.create(PEERS, {"metadata": again, "spec": old["spec"]})

        with pytest.raises(Conflict, match="created again"):
            acts.act(DeleteMember(name="c-2"))
        assert made.get(PEERS, "c-2")["metadata"].get("finalizers", []) == []


def test_a_member_whose_claim_is_gone_is_set_existing_only_all_the_same() -> None:
    """It serves for as long as its pod lives; an act that fails would block everything else."""
    with bootstrapped(*persistent(size=3)) as made:
        made.delete(CLAIMS, "c-2")
        made.edit(CLAIMS, "c-2", {"metadata": {"finalizers": []}})
        acts = Acts(made, IMPROBABLE)
        assert acts.state.by_name["c-2"].claim is None
        member_id = acts.state.by_name["c-2"].id
        made.edit(PEERS, "c-2", {"spec": {"bootstrap": {"initialClusterState": "New"}}})

        acts.act(SetExistingOnly(name="c-2", cluster_id="c0de", member_id=member_id, voters=(), revision=1))

        assert made.get(PEERS, "c-2")["spec"]["bootstrap"]["initialClusterState"] == "Existing"


def test_a_pod_that_runs_by_now_is_not_recreated() -> None:
    with bootstrapped(*persistent(size=3)) as made:
        acts = Acts(made, IMPROBABLE)
        before = made.get(CLAIMS, "c-2")

        with pytest.raises(Conflict, match="has changed since it was observed"):
            acts.act(RecreatePod(name="c-2"))
        assert (made.get(CLAIMS, "c-2"), acts.reported) == (before, [])


@pytest.mark.parametrize("has_claim", [False, True], ids=["claim", "pod"])
def test_a_pod_is_not_recreated_where_a_part_of_its_member_is_missing(has_claim: bool) -> None:
    with bootstrapped(*persistent(size=3)) as made:
        acts = Acts(made, IMPROBABLE)
        members = tuple(
            replace(member, pod=None) if has_claim else replace(member, claim=None)
            for member in acts.state.members
        )
        acts.state = replace(acts.state, members=members)
        before = made.objects()

        acts.act(RecreatePod(name="c-2"))
        assert (made.objects(), acts.reported) == (before, [])


@pytest.mark.parametrize(
    ("body", "kind", "resource"),
    [
        pytest.param(ephemeral(size=3), COREOS, PODS, id="ephemeral"),
        pytest.param(persistent(size=3), IMPROBABLE, PEERS, id="persistent"),
    ],
)
def test_no_initial_member_is_created_once_the_bootstrap_has_ended(
    body: Any, kind: Kind, resource: Kind
) -> None:
    """The act is late: since it was planned the cluster has served, and the member was lost."""
    with bootstrapped(*body) as made:
        acts = Acts(made, kind)
        acts.remember(cluster_id="")
        bootstrap = acts.state.persisted.bootstrap
        assert bootstrap is not None
        name = bootstrap.members[0]
        made.delete(resource, name)
        made.world.settle()

        with pytest.raises(Conflict, match="was bootstrapped since"):
            acts.act(_initial_member(bootstrap, name))
        assert name not in made.names(resource)


def test_no_initial_member_is_created_for_a_cluster_that_was_deleted() -> None:
    with bootstrapped(*ephemeral(size=3)) as made:
        acts = Acts(made, COREOS)
        bootstrap = acts.state.persisted.bootstrap
        assert bootstrap is not None
        made.delete(COREOS, "c")

        with pytest.raises(Conflict, match="was deleted since"):
            acts.act(_initial_member(bootstrap, "c-0000"))


def _initial_member(bootstrap: Bootstrap, name: str) -> CreateMember:
    start = Bootstrapping(members=bootstrap.members, token=bootstrap.token)
    return CreateMember(name=name, start=start, version=bootstrap.version)


def test_members_are_not_bootstrapped_again_while_one_of_them_has_a_claim() -> None:
    """The cache of claims may be behind, and then all of them seem to be lost."""
    with bootstrapped(*persistent()) as made:
        for name in ("c-0", "c-1"):
            made.lose_claim(name)
        acts = Acts(made, IMPROBABLE)
        with pytest.raises(Conflict, match="the claim c-2 exists"):
            acts.act(ConfirmClaimsLost(names=("c-0", "c-1", "c-2")))
        assert acts.reported == []


def test_a_claim_that_has_a_volume_by_now_keeps_its_storage_and_all_others() -> None:
    with bootstrapped(*persistent()) as made:
        acts = Acts(made, IMPROBABLE)
        unbound = {"status": {"phase": "Pending"}}
        made.api.objects.patch(CLAIMS, "default", "c-0", unbound, "merge", subresource="status")
        with pytest.raises(Conflict, match="the claim c-1 has a volume by now"):
            acts.act(ChangeStorage(names=("c-0", "c-1", "c-2")))
        assert made.names(CLAIMS) == ["c-0", "c-1", "c-2"]
        assert acts.reported == []


def test_ephemeral_members_have_no_claims_to_confirm() -> None:
    with bootstrapped(*ephemeral()) as made, pytest.raises(TypeError):
        Acts(made, COREOS).act(ConfirmClaimsLost(names=()))
