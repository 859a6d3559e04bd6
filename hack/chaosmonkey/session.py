"""One run from its beginning to its verdict; nothing remains broken, however it ends."""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

from e2e.support.api import NAMESPACES, Api
from e2e.support.dump import dump
from e2e.support.operators import DeployedOperator
from e2e.support.space import Space
from e2e.support.testbed import Testbed, find_testbed
from localcluster.console import RefusalError
from localcluster.external import kubectl_program
from localcluster.instance import Instance
from localcluster.paths import Cache

from . import judge
from .clusters import create, documents, make_namespace, open_subjects
from .injector import Injector
from .operators import Operators
from .options import Plan, plan
from .run import Run
from .verdict import Verdict, duration

MENDING_TRIES = 3


def run(options: argparse.Namespace) -> Verdict:
    """Create the clusters, inject faults, and judge what came of it."""
    testbed, instance = _find(options)
    chosen = plan(options, nodes=len(instance.nodes()) if instance is not None else 0)
    kubectl = testbed.kubectl(is_echoed=False)
    api = Api(testbed)
    folder = Path(tempfile.mkdtemp(prefix="etcd-operator-chaos-"))
    namespace = f"chaos-{uuid4().hex[:8]}"
    log = RunLog()
    log(f"seed      {chosen.seed}; operator's logs in {folder}")
    injector = Injector(api, namespace, instance, options.outage)
    with Operators(api, kubectl, options.operator_namespace, folder, injector.signal) as operators:
        operators.wait_ready()
        operator = DeployedOperator(testbed, kubectl, options.operator_namespace)
        space = Space(namespace, testbed, kubectl.within(namespace), api, operator)
        make_namespace(api, namespace)
        passed = False
        try:
            verdict = _run_and_judge(options, chosen, space, operators, injector, log)
            passed = verdict.passed
        finally:
            _mend(injector, log)
            if passed and not options.keep:
                api.delete(NAMESPACES, "", namespace)
            else:
                log(f"kept      namespace {namespace}")
    return verdict


def _run_and_judge(
    options: argparse.Namespace,
    chosen: Plan,
    space: Space,
    operators: Operators,
    injector: Injector,
    log: RunLog,
) -> Verdict:
    made = documents(chosen, options.storage_class)
    with ExitStack() as stack:
        ids = create(space, made)
        subjects = open_subjects(stack, space, made, ids, chosen.writes_per_second)
        for subject in subjects:  # the last one is the control
            log(f"serves    {subject.name} of {subject.document['apiVersion']}, {chosen.size} members")
        running = Run(chosen, space, subjects, operators, injector, log)
        log.begin()
        with _stopped_by_signals(running, log):
            running.inject()
        seconds = running.seconds
        log("ending    mending everything, waiting until all clusters are whole")
        running.mend(everything=True)
        running.settle()
        checks = judge.settled(running)
    checks += judge.survived(running, options.max_quorum_loss)
    behaviour, notable = judge.behaved(running)
    checks += behaviour
    if not all(check.passed for check in checks):
        log(f"dumped    objects, events, logs and member lists: {dump(space, 'chaos')}")
    elif not options.keep:
        checks += judge.removed(running)
    checks += judge.injected(running)
    return judge.verdict(running, seconds, checks, notable)


def _mend(injector: Injector, log: RunLog) -> None:
    """Leave nothing broken, also after an interruption; what cannot be mended is named."""
    for _ in range(MENDING_TRIES):
        injector.mend(everything=True)
    for outage in injector.outages:
        log(f"BROKEN    {outage.what}, and cannot be mended; see hack/cluster fault --help")


def _find(options: argparse.Namespace) -> tuple[Testbed, Instance | None]:
    """The Kubernetes, and what can be broken there."""
    if options.kubeconfig is not None:
        if options.name:
            raise RefusalError("either --name or --kubeconfig")
        if not options.kubeconfig.is_file():
            raise RefusalError(f"there is no kubeconfig at {options.kubeconfig}")
        kubectl = kubectl_program(Cache.of_user())
        os.environ["PATH"] = f"{kubectl.parent}{os.pathsep}{os.environ['PATH']}"
        return Testbed(options.kubeconfig.resolve()), None
    name = options.name or os.environ.get("ETCD_OPERATOR_CLUSTER") or "dev"
    os.environ.pop("ETCD_OPERATOR_KUBECONFIG", None)
    os.environ["ETCD_OPERATOR_CLUSTER"] = name
    instance = Instance(name, Cache.of_user())
    instance.require_up()
    return find_testbed(), instance


class RunLog:
    """Prints a line with the time since `begin`."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def begin(self) -> None:
        """Count from here."""
        self._began = time.monotonic()

    def __call__(self, line: str) -> None:
        """Print a line."""
        print(f"{duration(time.monotonic() - self._began)}  {line}", flush=True)


@contextmanager
def _stopped_by_signals(running: Run, log: Callable[[str], None]) -> Iterator[None]:
    """Until the end of the block, Ctrl-C and SIGTERM end the faults; after that they end everything."""

    def stop(number: int, _frame: object) -> None:
        if running.stop.is_set():
            raise KeyboardInterrupt
        log(f"stopping  because of {signal.Signals(number).name}; once more: without a verdict")
        running.stop.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
