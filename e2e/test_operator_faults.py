"""The operator and what it depends on break; clusters must neither notice it nor be duplicated.

Missing CRDs at start are tested on the pass rung. Deleting them removes the definition of every other
cluster, so it is tested on a Kubernetes of `hack/cluster` only.
"""

import itertools
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from uuid import uuid4

import pytest

from e2e.support.backups import OF_ONE_CLUSTER
from e2e.support.checks import assert_consistent, assert_nothing_doubled
from e2e.support.clusters import ephemeral, persistent
from e2e.support.measuring import assert_at_most, seconds_until_made
from e2e.support.operators import DeployedOperator, Operator
from e2e.support.resizing import RATE, assert_claims_are_their_members, members_of, scale, settle, written_to
from e2e.support.space import Space
from e2e.support.status import condition
from e2e.support.waiting import LONG, hold_for, wait_until
from e2e.support.writer import Writer
from etcd_operator.kube import resources
from localcluster.kubectl import Kubectl, KubectlError

pytestmark = pytest.mark.exclusive

KILLS_OF_CHANGES = 12
KILL_EVERY = 5.0
RESUME_SECONDS = 5.0
"""More than usual, until the operator acts on a new cluster after an outage of the API server."""

ELECTION_SECONDS = 4.0
"""On a busy machine members elect another leader now and then, whether or not there is an API server."""

REPEATED_SECONDS = 20.0
"""How long a further outage lasts, if the figures of the first one exceed a limit."""

STEADY_RATE = 20.0

DEFINITIONS = ("etcdclusters.coreos.com", "etcdclusters.etcd.improbable.io", "etcdpeers.etcd.improbable.io")


@pytest.mark.long
def test_an_operator_killed_every_five_seconds_while_sizes_change_loses_no_write(
    space: Space, operator: Operator
) -> None:
    """The sizes change before they are reached: where they are, see test_take_over.py."""
    documents = [space.settled(ephemeral("ephemeral")), space.settled(persistent("persistent"))]
    with written_to(space, *documents):
        for number in range(KILLS_OF_CHANGES):
            documents = [scale(space, document, (5, 3)[number % 2]) for document in documents]
            hold_for(KILL_EVERY, lambda: True, "the operator works", every=0.1)
            operator.kill()
        operator.wait_ready()
        for document in documents:
            settle(space, document)
    assert_claims_are_their_members(space, documents[1])


@pytest.mark.parametrize(
    "outage",
    [pytest.param(30.0, id="half-a-minute"), pytest.param(120.0, id="two-minutes", marks=pytest.mark.long)],
)
def test_an_api_server_away_in_the_middle_of_a_resize_changes_nothing_and_work_resumes_at_once(
    space: Space, operator: Operator, outage: float
) -> None:
    space.require_local("the API server of this cluster is not ours to stop")
    steady = space.settled(persistent("steady"))
    space.settled(ephemeral("before"))
    before = operator.incarnation()
    addresses, initial = space.addresses(steady), space.addresses(ephemeral("before"))

    resized = scale(space, ephemeral("before"), 5)
    wait_until(lambda: len(space.pods(resized)) > 3, "the resize is under way", every=0.02)
    lengths = itertools.chain([outage], itertools.repeat(REPEATED_SECONDS))
    figures: list[str] = []

    def worst_share() -> float:
        """The larger part of its limit that resuming, or the longest gap in writes, took."""
        number = len(figures)
        writers = write_without_api_server(space, next(lengths), {STEADY_RATE: addresses, RATE: initial})
        resumed = seconds_until_made(space, ephemeral(f"after-{number}", size=1))
        alive = seconds_until_made(space, ephemeral(f"then-{number}", size=1))
        for each in writers:
            each.verify()
        gap = writers[0].longest_gap
        figures.append(f"resumed after {resumed:.1f} s ({alive:.1f} s is usual), longest gap {gap:.1f} s")
        return max((resumed - alive) / RESUME_SECONDS, gap / ELECTION_SECONDS)

    share = assert_at_most(1.0, worst_share, lambda: f"of the limits; {figures}")
    print(f"{share:.2f} of the limits; {figures}")
    # Kubernetes needs time until its node is ready again and its pods start.
    after = ephemeral("after-0", size=1)
    space.wait_serving(after)
    settle(space, resized)
    assert operator.incarnation() == before, "the operator restarted"
    for document in (steady, resized, after):
        assert_consistent(space, document)
    for document in (steady, after):
        assert_nothing_doubled(space, document)
    members = members_of(space, resized)
    assert members[:3] == [f"before-{number:04}" for number in range(3)], members
    assert_nothing_doubled(space, resized, members=members)


def write_without_api_server(
    space: Space, seconds: float, clusters: Mapping[float, list[str]]
) -> list[Writer]:
    """Stop the API server for so long, and write to clusters meanwhile: addresses by puts per second."""
    space.testbed.fault("apiserver", "stop")
    try:
        with ExitStack() as stack:
            writers = [
                stack.enter_context(
                    Writer(lambda each=each: each, per_second=rate, prefix=f"outage-{uuid4().hex[:8]}")  # type: ignore[misc]
                )
                for rate, each in clusters.items()
            ]
            hold_for(seconds, lambda: True, "the API server is away", every=0.5)
    finally:
        space.testbed.fault("apiserver", "start")
    # What the API server itself needs until it answers is not the operator's time.
    wait_until(lambda: space.kubectl("get", "pods"), "the API server answers again")
    return writers


def test_without_its_rights_the_operator_stays_up_and_goes_on_when_they_return(
    space: Space, operator: Operator, kubectl: Kubectl
) -> None:
    if not isinstance(operator, DeployedOperator):
        pytest.skip("a process has the rights of an administrator")
    steady = space.created(ephemeral("steady", size=1))
    before = operator.incarnation()
    with without_binding(kubectl, "etcd-operator"):
        document = space.create(ephemeral("late", size=1))
        wait_until(lambda: "orbidden" in operator.log(), "the log has Forbidden", every=1.0)
        wait_until(lambda: operator.metric("rest_client_requests_total") > 0, "its metrics answer")
    space.wait_serving(document)
    assert operator.incarnation() == before, "the operator restarted"
    assert_consistent(space, steady)
    assert_consistent(space, document)


def test_the_right_on_secrets_is_given_in_one_namespace_by_the_command_in_the_condition(
    space: Space, operator: Operator, kubectl: Kubectl
) -> None:
    if not isinstance(operator, DeployedOperator):
        pytest.skip("a process has the rights of an administrator")
    with without_binding(kubectl, "etcd-operator-secrets"):
        document = space.create(ephemeral(size=1, backup=OF_ONE_CLUSTER))

        def command() -> str:
            found = condition(space.stored(document), "BackupHealthy")
            return str(found["message"]).partition(": kubectl ")[2] if found["reason"] == "Forbidden" else ""

        kubectl(*str(wait_until(command, "the condition has a command", every=0.5)).split())
        space.wait_condition(document, "BackupHealthy", "BackedUp")


def test_no_cluster_can_be_created_in_the_namespace_of_the_operator(
    operator: Operator, kubectl: Kubectl
) -> None:
    """It would be deleted by `kubectl delete -f manifests/deployment.yaml`."""
    if not isinstance(operator, DeployedOperator):
        pytest.skip("a process has no namespace")
    for document in (ephemeral(), persistent()):
        with pytest.raises(KubectlError, match="exceeded quota"):
            kubectl.within(operator.NAMESPACE).create(document)


@contextmanager
def without_binding(kubectl: Kubectl, name: str) -> Iterator[None]:
    """A ClusterRoleBinding of the operator is missing until the end of the block."""
    binding = kubectl.json("get", "clusterrolebinding", name)
    for field in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
        binding["metadata"].pop(field, None)
    kubectl("delete", "clusterrolebinding", name)
    try:
        yield
    finally:
        kubectl.apply(binding)


def test_of_two_operators_the_second_takes_over_when_the_leader_is_killed(
    space: Space, operator: Operator, kubectl: Kubectl
) -> None:
    if not isinstance(operator, DeployedOperator):
        pytest.skip("the process for development runs without election")
    leases = kubectl.within(operator.NAMESPACE)

    def holder() -> str:
        return str(
            leases("get", "lease", "etcd-operator", "-o", "jsonpath={.spec.holderIdentity}", check=False)
        )

    operator.scale(2)
    try:
        pods = [str(pod["metadata"]["name"]) for pod in operator.pods()]
        wait_until(lambda: any(holder().startswith(pod) for pod in pods), "one of the two leads", every=0.5)
        first = holder()
        document = space.create(persistent())
        leader = next(pod for pod in pods if first.startswith(pod))
        operator.kill_one(leader)
        wait_until(lambda: holder() not in ("", first), f"another than {first} leads", every=0.5)
        space.wait_serving(document)
        space.wait_settled(document)
        assert_consistent(space, document)
        assert_nothing_doubled(space, document)
    finally:
        operator.scale(1)


def test_deleting_the_definitions_removes_the_clusters_and_never_hangs(
    space: Space, operator: Operator, kubectl: Kubectl
) -> None:
    space.require_local("this would delete every cluster of this Kubernetes")
    documents = [space.settled(ephemeral()), space.settled(persistent())]
    assert len(budgets := space.names(resources.BUDGETS)) == len(documents), budgets
    before = operator.incarnation()
    try:
        kubectl("delete", "crd", *DEFINITIONS, f"--timeout={LONG:g}s", deadline=LONG + 30)
        space.wait_no_pods()
        wait_until(lambda: not space.names(resources.BUDGETS), "the budgets are deleted")
        assert space.names(resources.CLAIMS), "the claims were deleted with the definitions"
        assert operator.incarnation() == before, "the operator restarted"
    finally:
        operator.kill()  # it applies the definitions when it starts
        wait_until(lambda: _are_served(kubectl), "the definitions are back", every=1.0)
        operator.wait_ready()
    assert_consistent(space, space.created(persistent()))


def _are_served(kubectl: Kubectl) -> bool:
    established = {
        crd["metadata"]["name"]
        for crd in kubectl.json("get", "crd")["items"]
        for each in crd.get("status", {}).get("conditions") or ()  # null at first
        if each["type"] == "Established" and each["status"] == "True"
    }
    return set(DEFINITIONS) <= established
