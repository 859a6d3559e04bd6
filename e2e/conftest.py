"""Fixtures of the system tests: the test bed, the operator under test, a namespace for each test.

$ETCD_OPERATOR_E2E_OPERATOR   deployment (default): the Deployment etcd-operator in its namespace
                              process: one is started here for the run
$ETCD_OPERATOR_KUBECONFIG     a cluster to use; without it that of hack/cluster ($ETCD_OPERATOR_CLUSTER)
Tests marked `exclusive` break what all tests depend on. Two runs:
    pytest e2e -n 3 -m "not exclusive"
    pytest e2e -m exclusive
Every namespace enforces the Pod Security Standard `restricted`, except for tests marked `unrestricted`.
Tests marked `capability` or `walkthrough` are run by `hack/test` also without --all.
Tests marked `long` take minutes or need three nodes; they run only if -m names them (docs/development.md).
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from e2e.support import failures
from e2e.support.api import Api
from e2e.support.dump import dump
from e2e.support.operators import DeployedOperator, Operator, configured_kind
from e2e.support.process import OperatorProcess
from e2e.support.space import Space
from e2e.support.testbed import Testbed, TestbedError, find_testbed
from e2e.support.waiting import wait_until
from localcluster.kubectl import Kubectl

FOLDER = "ETCD_OPERATOR_E2E_FOLDER"
"""Where the workers of one run find the operator's process."""

RESTRICTED = "pod-security.kubernetes.io/enforce=restricted"

LAST = "test_rights.py"

REPORT = pytest.StashKey[pytest.TestReport]()
STARTED = pytest.StashKey[OperatorProcess]()


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "exclusive: breaks what other tests depend on; run without -n")
    for name in ("capability(name)", "walkthrough(document, *sections)"):
        config.addinivalue_line("markers", f"{name}: runs in the quick run, too; see e2e/support/subjects.py")
    config.addinivalue_line("markers", "unrestricted: in a namespace that admits pods of every kind")
    config.addinivalue_line("markers", "long: takes minutes or three nodes; runs only when -m names it")
    failures.register(config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long tests out unless they are selected; what judges all others comes last."""
    items.sort(key=lambda item: item.path.name == LAST)
    if "long" in config.option.markexpr:
        return
    left_out = [item for item in items if item.get_closest_marker("long") is not None]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Start the operator's process once for all workers."""
    if configured_kind() != "process" or hasattr(session.config, "workerinput"):
        return
    if session.config.option.collectonly:
        return
    os.environ[FOLDER] = tempfile.mkdtemp(prefix="etcd-operator-e2e-")
    try:
        operator = OperatorProcess(find_testbed().kubectl(), Path(os.environ[FOLDER]))
    except TestbedError:
        return  # the fixture reports it
    operator.prepare()
    operator.start()
    session.config.stash[STARTED] = operator


def pytest_sessionfinish(session: pytest.Session) -> None:
    started = session.config.stash.get(STARTED, None)
    if started is not None:
        started.stop()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Keep the report of the test itself, for the fixtures' teardown."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.when == "call":
        item.stash[REPORT] = report


@pytest.fixture(scope="session")
def testbed() -> Testbed:
    try:
        return find_testbed()
    except TestbedError as error:
        pytest.exit(f"no Kubernetes to test on: {error}", returncode=3)


@pytest.fixture(scope="session")
def kubectl(testbed: Testbed) -> Kubectl:
    """kubectl in its default namespace; it caches names of resources for hours, so they are read once."""
    made = testbed.kubectl()
    made("api-resources")
    return made


@pytest.fixture(scope="session")
def api(testbed: Testbed) -> Api:
    return Api(testbed)


@pytest.fixture(scope="session")
def operator(testbed: Testbed, kubectl: Kubectl) -> Operator:
    """The operator under test, ready."""
    found: Operator
    if configured_kind() == "process":
        found = OperatorProcess(kubectl, Path(os.environ[FOLDER]))
    else:
        found = DeployedOperator(testbed, kubectl)
    found.wait_ready()
    return found


@pytest.fixture
def make_space(
    request: pytest.FixtureRequest, testbed: Testbed, kubectl: Kubectl, api: Api, operator: Operator
) -> Iterator[Callable[[], Space]]:
    """Makes namespaces; they are deleted at the end, and nothing waits for it."""
    made: list[Space] = []

    def make() -> Space:
        namespace = f"e2e-{uuid4().hex[:8]}"
        kubectl("create", "namespace", namespace)
        # Without it no pod is admitted; after an outage of the control plane it comes many seconds later.
        account = ("--namespace", namespace, "get", "serviceaccount", "default")
        wait_until(lambda: kubectl(*account), "the namespace has its service account")
        if request.node.get_closest_marker("unrestricted") is None:
            kubectl("label", "namespace", namespace, RESTRICTED)
        made.append(Space(namespace, testbed, kubectl.within(namespace), api, operator))
        return made[-1]

    yield make
    report = request.node.stash.get(REPORT, None)
    if report is not None and report.failed:
        for space in made:
            print(f"objects, events, logs and member lists: {dump(space, request.node.name)}")
        print(f"logs of the control plane: {testbed.logs if testbed.is_local else 'with the cluster'}")
    for space in made:
        kubectl("delete", "namespace", space.namespace, "--wait=false", check=False)


@pytest.fixture
def space(make_space: Callable[[], Space]) -> Space:
    """A namespace of this test's own."""
    return make_space()
