"""The NetworkPolicy of a cluster: kept as desired, unless somebody else decides, or it cannot be kept."""

from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from etcd_operator.controllers.shared.own_peer import OperatorUnknown
from etcd_operator.errors import Forbidden
from etcd_operator.kube import resources
from unit.fakes.apiserver import Answer, Json, Kind
from unit.fakes.apiserver.faults import Fault, Request
from unit.fakes.apiserver.kinds import NETWORK_POLICIES
from unit.passes import harness
from unit.passes.bench import Bench, bench, bootstrapped
from unit.passes.bodies import COREOS, MAKERS, ephemeral
from unit.passes.disturbance import DISTURBANCES, Disturbance, survives

Make = Callable[..., tuple[Kind, Json]]
DENY: Json = {"metadata": {"name": "deny"}, "spec": {"podSelector": {}, "policyTypes": ["Ingress"]}}
EGRESS: Json = {"metadata": {"name": "egress"}, "spec": {"podSelector": {}, "policyTypes": ["Egress"]}}
OTHER_PODS: Json = {"metadata": {"name": "web"}, "spec": {"podSelector": {"matchLabels": {"app": "web"}}}}
LONG = [{"ipBlock": {"cidr": f"10.0.{n // 250}.{n % 250}/32"}} for n in range(2000)]
CONDITION = "NetworkPolicyDiffers"
WEB: Json = {"podSelector": {"matchLabels": {"app": "web"}}}


def network(made: Bench, kind: Kind, **changes: object) -> None:
    """Edit `spec.networkPolicy`."""
    made.edit(kind, "c", {"spec": {"networkPolicy": changes}})
    made.settle()


def admitted(made: Bench) -> dict[int, list[Json] | None]:
    """Who may connect to each port; None for everybody."""
    rules = made.get(NETWORK_POLICIES)["spec"]["ingress"]
    return {port["port"]: rule.get("from") for rule in rules for port in rule["ports"]}


def writes(made: Bench) -> list[str]:
    """The methods of all writes of NetworkPolicies so far."""
    return [w.request.method for w in made.writes() if w.request.plural == "networkpolicies"]


def writes_policy(request: Request) -> bool:
    return request.plural == "networkpolicies" and request.is_write


@MAKERS
def test_it_follows_the_spec_and_goes_with_its_cluster(make: Make) -> None:
    kind, body = make(size=1)
    with bootstrapped(kind, body) as made:
        own = {"podSelector": made.get(NETWORK_POLICIES)["spec"]["podSelector"]}
        peers = admitted(made)
        assert (peers[2379], peers[2380], peers[2381]) == (None, [own], [harness.own_peer()])
        network(made, kind, clients=[WEB], metrics=[WEB])
        assert WEB in (admitted(made)[2379] or ())
        assert admitted(made)[2381] == [harness.own_peer(), WEB]
        network(made, kind, enabled=False)
        assert made.names(NETWORK_POLICIES) == []
        made.rest()
        network(made, kind, enabled=True)
        assert made.event_reasons().count("NetworkPolicyDeleted") == 1
        made.rest()
        made.delete(kind, "c")
        made.run_until(lambda: made.names(NETWORK_POLICIES) == [])


@MAKERS
def test_one_that_is_edited_or_deleted_comes_back(make: Make) -> None:
    with bootstrapped(*make(size=1)) as made:
        before = made.get(NETWORK_POLICIES)
        made.edit(NETWORK_POLICIES, "c", {"spec": {"ingress": [{}]}})
        made.drain()
        assert made.get(NETWORK_POLICIES)["spec"] == before["spec"]
        made.delete(NETWORK_POLICIES, "c")
        made.drain()
        assert made.get(NETWORK_POLICIES)["spec"] == before["spec"]
        made.rest()


def test_ours_stays_beside_one_that_comes_later_and_policies_about_other_things_are_none() -> None:
    """Without ours, one that allows Prometheus would close all other ports to everybody."""
    with bootstrapped(*ephemeral(size=1)) as made:
        made.create(NETWORK_POLICIES, EGRESS)
        made.create(NETWORK_POLICIES, OTHER_PODS)
        made.rest()
        made.create(NETWORK_POLICIES, DENY)
        made.settle()
        assert "c" in made.names(NETWORK_POLICIES)
        found = made.condition(COREOS, CONDITION)
        assert (found["status"], found["reason"]) == ("True", "OtherPolicy")
        assert "NetworkPolicy deny selects members" in found["message"]
        network(made, COREOS, clients=[WEB])
        assert WEB in (admitted(made)[2379] or ())
        made.rest()
        made.delete(NETWORK_POLICIES, "deny")
        made.settle()
        assert made.condition(COREOS, CONDITION) == {}
        made.rest()


@MAKERS
def test_where_all_pods_are_isolated_already_none_is_written_for_a_new_cluster(make: Make) -> None:
    kind, body = make(size=1)
    with bench() as made:
        made.create(NETWORK_POLICIES, DENY)
        made.start()
        made.create(kind, body)
        made.settle()
        assert writes(made) == []
        assert made.condition(kind, CONDITION) == {}
        made.delete(NETWORK_POLICIES, "deny")
        made.drain()
        assert made.names(NETWORK_POLICIES) == ["c"]


def test_rules_of_others_may_be_longer_than_what_is_kept_of_an_object() -> None:
    with bootstrapped(*ephemeral(size=1)) as made:
        made.create(NETWORK_POLICIES, {**EGRESS, "spec": {**EGRESS["spec"], "egress": [{"to": LONG}]}})
        made.create(
            NETWORK_POLICIES, {**OTHER_PODS, "spec": {**OTHER_PODS["spec"], "ingress": [{"from": LONG}]}}
        )
        network(made, COREOS, clients=[WEB])
        assert WEB in (admitted(made)[2379] or ())
        made.restart()
        network(made, COREOS, enabled=False)
        assert "c" not in made.names(NETWORK_POLICIES)


def test_it_is_switched_off_also_where_the_cache_cannot_read_it() -> None:
    with bootstrapped(*ephemeral(size=1)) as made:
        made.kill()
        made.edit(NETWORK_POLICIES, "c", {"spec": ["odd"]})
        made.start()
        made.run_until(lambda: bool(made.condition(COREOS, CONDITION)))
        assert made.condition(COREOS, CONDITION)["reason"] == "PolicyUnreadable"
        network(made, COREOS, enabled=False)
        assert made.names(NETWORK_POLICIES) == []
        assert made.condition(COREOS, CONDITION) == {}


def test_seeds_of_other_clusters_reach_the_backup_tool() -> None:
    with bootstrapped(*ephemeral(size=1)) as made:
        seeds = {"podSelector": {"matchExpressions": [{"key": "etcd_cluster", "operator": "Exists"}]}}
        assert admitted(made)[19999] == [harness.own_peer(), seeds]


def test_a_webhook_that_does_not_answer_delays_nothing_else() -> None:
    """Its status is written in the same pass, and the workers do not wait for it once per cluster."""
    with bootstrapped(*ephemeral(size=1)) as made:
        made.create(*ephemeral("d", size=1))
        made.settle()
        tries: list[str] = []

        def slow(request: Request) -> Fault | None:
            if request.plural != "networkpolicies" or not request.is_write:
                return None
            tries.append(request.path)
            made.clock.advance(10.0)
            return Answer(code=504, reason="Timeout", message="the webhook does not answer")

        made.api.before = slow
        for name in ("c", "d"):
            made.edit(COREOS, name, {"spec": {"size": 2, "networkPolicy": {"clients": [WEB]}}})
        made.run_until(lambda: len(tries) == 1)
        made.settle()
        assert sum(len(p.running) for p in made.etcds.by_token.values()) == 4
        before = len(tries)
        made.wait(120.0)
        assert len(tries) - before <= 4
        for name in ("c", "d"):
            made.run_until(lambda name=name: bool(made.condition(COREOS, CONDITION, name)))  # type: ignore[misc]
            found = made.condition(COREOS, CONDITION, name)
            assert found["reason"] == "RequestFailed"
            assert "the webhook does not answer" in found["message"]
        made.api.before = lambda _: None
        made.run_until(lambda: WEB in (admitted(made)[2379] or ()))
        made.settle()
        assert made.condition(COREOS, CONDITION) == {}


def test_a_failed_write_of_the_policy_is_reported_and_fails_no_pass() -> None:
    """A pass that fails is repeated later and later, and so would be all that the cluster needs."""
    with capture_logs() as logs, bench() as made:
        made.api.before = lambda r: Answer(code=500) if writes_policy(r) else None
        made.start()
        made.create(*ephemeral(size=3))
        made.settle()
        made.wait(40.0)
        assert made.condition(COREOS, CONDITION)["reason"] == "RequestFailed"
        assert writes(made).count("POST") <= 4
        assert [each for each in logs if "made up by the test" in str(each.get("error"))] == []


def test_peers_from_outside_remain_admitted_while_nobody_knows_who_they_are() -> None:
    """Without a quorum etcd's list of members is not known, so nothing is closed."""
    with bootstrapped(*ephemeral(size=1)) as made:
        etcd = made.etcd.etcd
        with etcd.changed:
            etcd.add(etcd.members[0], ("http://other:2380",), is_learner=True)
        made.run_until(lambda: admitted(made)[2380] is None)
        etcd.freeze("c-0000")
        made.wait(60.0)
        assert admitted(made)[2380] is None


def no_rights(request: Request) -> Fault | None:
    return Answer(code=403, reason="Forbidden") if writes_policy(request) else None


@MAKERS
def test_without_the_right_to_write_it_the_cluster_lives_and_a_condition_reports_it(make: Make) -> None:
    kind, body = make(size=1)
    with bench() as made:
        made.api.before = no_rights
        made.start()
        made.create(kind, body)
        made.settle()
        assert made.condition(kind, CONDITION)["reason"] == "Forbidden"
        made.edit(kind, "c", {"spec": {"size" if kind is COREOS else "replicas": 2}})
        made.settle()
        assert len(made.etcd.running) == 2
        made.api.before = lambda _: None
        made.run_until(lambda: made.names(NETWORK_POLICIES) == ["c"])
        made.settle()
        assert made.condition(kind, CONDITION) == {}
        made.rest()


def test_without_the_right_to_watch_them_nothing_is_written_and_a_condition_reports_it() -> None:
    with bootstrapped(*ephemeral(size=1)) as made:
        assert made.operator is not None
        (policies,) = (i for i in made.operator.informers if i.resource == resources.NETWORK_POLICIES)
        policies.reflector.last_error = Forbidden("networkpolicies is forbidden")
        before = writes(made)
        made.wait(30.0)
        assert made.condition(COREOS, CONDITION)["message"] == "networkpolicies is forbidden"
        assert made.condition(COREOS, "Degraded")["status"] == "False"
        network(made, COREOS, enabled=False)
        assert made.condition(COREOS, CONDITION) == {}
        assert writes(made) == [*before, "DELETE"]


def test_a_cluster_is_made_before_the_policies_are_known() -> None:
    with bench() as made:
        made.api.objects.kinds.withdraw(NETWORK_POLICIES)
        made.start()
        made.create(*ephemeral(size=1))
        made.settle()
        assert writes(made) == []
        made.wait(60.0)
        assert "are not known" in made.condition(COREOS, CONDITION)["message"]
        made.rest()


def unknown() -> Json:
    raise OperatorUnknown("the operator's pod has hostNetwork")


def test_one_that_would_cut_the_operator_off_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    with bootstrapped(*ephemeral(size=1)) as made:
        monkeypatch.setattr(harness, "own_peer", unknown)
        made.restart()
        made.run_until(lambda: bool(made.condition(COREOS, CONDITION)))
        assert made.names(NETWORK_POLICIES) == []
        assert made.condition(COREOS, CONDITION)["reason"] == "OperatorUnknown"
        made.rest()


def test_a_name_that_is_taken_is_reported_and_disturbs_nothing() -> None:
    with bench() as made:
        made.create(NETWORK_POLICIES, {**OTHER_PODS, "metadata": {"name": "c"}})
        made.start()
        made.create(*ephemeral(size=1))
        made.settle()
        assert made.condition(COREOS, CONDITION)["reason"] == "NameConflict"
        assert made.get(NETWORK_POLICIES)["spec"] == OTHER_PODS["spec"]


def test_one_that_cannot_be_read_may_select_members() -> None:
    with bench() as made:
        made.create(NETWORK_POLICIES, {"metadata": {"name": "odd"}, "spec": ["odd"]})
        made.start()
        made.create(*ephemeral(size=1))
        made.settle()
        assert made.condition(COREOS, CONDITION)["reason"] == "PolicyUnreadable"
        assert writes(made) == []


def test_a_policy_that_changes_ours_back_is_reported_and_not_fought() -> None:
    def insisting(kind: Kind, obj: Json) -> None:
        if kind == NETWORK_POLICIES:
            obj["spec"]["ingress"] = [{}]

    with bootstrapped(*ephemeral(size=1)) as made:
        made.api.objects.mutate = insisting
        network(made, COREOS, clients=[WEB])
        assert made.condition(COREOS, CONDITION)["reason"] == "Overridden"
        before = len(writes(made))
        made.wait(60.0)
        assert len(writes(made)) - before <= 8


@pytest.mark.parametrize("disturbance", DISTURBANCES.values(), ids=DISTURBANCES)
@pytest.mark.parametrize("write", [1, 2])
def test_whatever_happens_at_a_write_it_is_as_desired_in_the_end(
    write: int, disturbance: Disturbance
) -> None:
    with bootstrapped(*ephemeral(size=1)) as made:
        made.kill()
        edit = {"spec": {"networkPolicy": {"clients": [WEB]}}}
        assert survives(made, disturbance, write, lambda: made.edit(COREOS, "c", edit))
        made.run_until(lambda: WEB in (admitted(made)[2379] or ()))
        made.settle()
        made.rest()
