"""The command line: `hack/chaos`.

The log and the verdict go to stdout; exit status 0 means that everything survived, 1 that something did not
or that the run could not begin, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

from e2e.support.api import NAMESPACES, Api
from e2e.support.checks import assert_consistent
from e2e.support.dump import dump
from e2e.support.operators import DeployedOperator
from e2e.support.space import Space
from e2e.support.testbed import Testbed, TestbedError, find_testbed
from e2e.support.waiting import NotInTimeError, wait_until
from etcd_operator.errors import OperatorError
from etcd_operator.kube import resources
from etcd_operator.kube.resources import Resource
from localcluster.console import RefusalError
from localcluster.external import kubectl_program
from localcluster.instance import Instance
from localcluster.paths import Cache

from . import judge
from .deeds import Deeds
from .operators import Operators
from .run import Plan, Run, documents, open_subjects
from .schedule import Deed
from .verdict import Check, Verdict, duration
from .victims import spare

ACCOUNTS = Resource(group="", version="v1", plural="serviceaccounts", kind="ServiceAccount")
SERVE_SECONDS = 120.0
MENDING_TRIES = 3

DESCRIPTION = """A chaos monkey: kills etcd members and the operator at random, then says what survived.

It makes clusters of its own, of both kinds in turn, in a namespace of their own, writes to them all the
time, and strikes no others. One more, the control, is left alone: what goes wrong there as well is the
machine's doing. (An operator or a node that it strikes serves others, too.) A cluster is struck
again only when it is whole, and never so that it loses its quorum; when that takes time, it says so.

  hack/chaos                                      ten minutes on the dev cluster of hack/cluster
  hack/chaos --duration 1h --seed 4711            an hour, in the order of that seed
  hack/chaos --kubeconfig PATH                    any Kubernetes whose pods can be dialled from here

what can be done (--deeds); all but delete on clusters of hack/cluster only
  delete      delete a member's pod
  kill        SIGKILL a member's process
  freeze      stop a member's process (SIGSTOP) for --outage
  node-stop   end the kubelet of a node for --outage; its pods go on running
  node-cut    take the link of a node down for --outage
The operator's leader is killed by deletion of its pod, on clusters of hack/cluster by SIGKILL in turn.
The last line is PASSED or FAILED; Ctrl-C ends the run early with a verdict, a second one without.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; 0 if everything survived."""
    options = _parser().parse_args(arguments)
    try:
        return _run(options)
    except (RefusalError, TestbedError, OperatorError, NotInTimeError) as error:
        print(f"hack/chaos: {' '.join(str(error).split())}", file=sys.stderr)
    except KeyboardInterrupt:
        print("hack/chaos: interrupted, no verdict", file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hack/chaos", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    where = parser.add_argument_group("where")
    where.add_argument(
        "--name", help="which cluster of hack/cluster (default: $ETCD_OPERATOR_CLUSTER, else dev)"
    )
    where.add_argument("--kubeconfig", type=Path, metavar="PATH", help="another Kubernetes instead of it")
    where.add_argument(
        "--operator-namespace", default="default", metavar="NAME", help="where the operator runs"
    )
    where.add_argument(
        "--storage-class",
        default="",
        metavar="NAME",
        help="for persistent members (default: the default one)",
    )
    what = parser.add_argument_group("what")
    what.add_argument(
        "--seed", type=int, metavar="N", help="strike in the order of this one (default: random)"
    )
    what.add_argument(
        "--duration", type=_seconds, default="10m", metavar="TIME", help="(default: %(default)s)"
    )
    what.add_argument(
        "--interval",
        type=_seconds,
        default="30s",
        metavar="TIME",
        help="between strikes (default: %(default)s)",
    )
    what.add_argument(
        "--at-once", type=_count, default=1, metavar="N", help="members per strike (default: %(default)s)"
    )
    what.add_argument(
        "--deeds",
        type=_deeds,
        metavar="A,B,...",
        help="one of these each time; named twice: twice as often (default: delete,kill,freeze)",
    )
    what.add_argument(
        "--outage",
        type=_seconds,
        default="15s",
        metavar="TIME",
        help="how long freeze, node-stop, node-cut last",
    )
    what.add_argument(
        "--kill-operator-every",
        type=_seconds,
        default="60s",
        metavar="TIME",
        help="0: never (default: %(default)s)",
    )
    what.add_argument("--clusters", type=_count, default=3, metavar="N", help="(default: %(default)s)")
    what.add_argument(
        "--size", type=_count, default=3, metavar="N", help="members of each (default: %(default)s)"
    )
    what.add_argument(
        "--writes", type=_count, default=10, metavar="N", help="per second and cluster (default: %(default)s)"
    )
    what.add_argument(
        "--beyond-quorum",
        action="store_true",
        help="spare no quorum and wait for nobody; what an ephemeral cluster loses by it is not judged",
    )
    judged = parser.add_argument_group("verdict")
    judged.add_argument(
        "--patience",
        type=_seconds,
        default="5m",
        metavar="TIME",
        help="for a recovery (default: %(default)s)",
    )
    judged.add_argument(
        "--max-quorum-loss",
        type=_seconds,
        default="10s",
        metavar="TIME",
        help="that a strike may cause, beside the control's (default: %(default)s)",
    )
    judged.add_argument("--keep", action="store_true", help="keep the clusters also when all is well")
    return parser


def _run(options: argparse.Namespace) -> int:
    testbed, instance = _find(options)
    plan = _plan(options, nodes=len(instance.nodes()) if instance is not None else 0)
    kubectl = testbed.kubectl(is_echoed=False)
    api = Api(testbed)
    folder = Path(tempfile.mkdtemp(prefix="etcd-operator-chaos-"))
    namespace = f"chaos-{uuid4().hex[:8]}"
    say = _Teller()
    say(f"seed      {plan.seed}; operator's logs in {folder}")
    deeds = Deeds(api, namespace, instance, options.outage)
    with Operators(api, kubectl, options.operator_namespace, folder, deeds.signal) as operators:
        operators.wait_ready()
        operator = DeployedOperator(testbed, kubectl, options.operator_namespace)
        space = Space(namespace, testbed, kubectl.within(namespace), api, operator)
        _make_namespace(api, namespace)
        passed = False
        try:
            verdict = _strike_and_judge(options, plan, space, operators, deeds, say)
            passed = verdict.passed
        finally:
            _mend(deeds, say)
            if passed and not options.keep:
                api.delete(NAMESPACES, "", namespace)
            else:
                say(f"kept      namespace {namespace}")
    print("\n".join(verdict.lines()), flush=True)
    return 0 if verdict.passed else 1


def _strike_and_judge(
    options: argparse.Namespace, plan: Plan, space: Space, operators: Operators, deeds: Deeds, say: _Teller
) -> Verdict:
    made = documents(plan, options.storage_class)
    with ExitStack() as stack:
        ids = _create(space, made)
        subjects = open_subjects(stack, space, made, ids, plan.writes_per_second)
        for subject in subjects:  # the last one is the control
            say(f"serves    {subject.name} of {subject.document['apiVersion']}, {plan.size} members")
        run = Run(plan, space, subjects, operators, deeds, say)
        say.begin()
        with _told_to_stop(run, say):
            run.strike()
        seconds = run.seconds
        say("ending    mending everything, waiting until all clusters are whole")
        run.mend(everything=True)
        run.settle()
        checks = judge.settled(run)
    checks += judge.survived(run, options.max_quorum_loss)
    said, notable = judge.behaved(run)
    checks += said
    if not all(check.passed for check in checks):
        say(f"dumped    objects, events, logs and member lists: {dump(space, 'chaos')}")
    elif not options.keep:
        checks += judge.removed(run)
    if not run.struck.counts:
        checks.append(Check(name="something was struck", found="nothing was; too short, or nobody to spare"))
    return judge.verdict(run, seconds, checks, notable)


def _mend(deeds: Deeds, say: _Teller) -> None:
    """Leave nothing broken, also after an interruption; what cannot be mended is named."""
    for _ in range(MENDING_TRIES):
        deeds.mend(everything=True)
    for outage in deeds.outages:
        say(f"BROKEN    {outage.what}, and cannot be mended; see hack/cluster fault --help")


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


def _plan(options: argparse.Namespace, *, nodes: int) -> Plan:
    """What is asked for, if it can be done; `nodes` that can be broken: 0 if the cluster is not ours."""
    is_local = nodes > 0
    deeds = options.deeds or ((Deed.DELETE, Deed.KILL, Deed.FREEZE) if is_local else (Deed.DELETE,))
    for deed in deeds:
        if deed.is_local and not is_local:
            raise RefusalError(f"{deed} works on a cluster of hack/cluster only; with --kubeconfig: delete")
        if deed.is_of_node and nodes == 1:
            raise RefusalError(f"{deed} needs a second node; run: hack/cluster up --nodes 3")
    if not options.beyond_quorum and spare(options.size) < 1:
        raise RefusalError(
            f"a cluster of {options.size} has no member to spare; --size 3, or --beyond-quorum"
        )
    return Plan(
        seed=secrets.randbelow(10**6) if options.seed is None else options.seed,
        seconds=options.duration,
        interval=options.interval,
        at_once=options.at_once,
        deeds=deeds,
        operator_every=options.kill_operator_every,
        operator_deeds=(Deed.DELETE, Deed.KILL) if is_local else (Deed.DELETE,),
        clusters=options.clusters,
        size=options.size,
        writes_per_second=options.writes,
        beyond_quorum=options.beyond_quorum,
        patience=options.patience,
    )


def _make_namespace(api: Api, name: str) -> None:
    api.make_namespace(name)
    # The controller-manager makes the account that pods need.
    wait_until(lambda: api.get(ACCOUNTS, name, "default"), 30, f"the account of {name}")


def _create(space: Space, made: Sequence[dict[str, object]]) -> list[str]:
    """Create the clusters and wait until they serve; their IDs."""
    for document in made:
        space.create(document)
    try:
        for document in made:
            space.wait_serving(document, within=SERVE_SECONDS)
            space.wait_settled(document)
    except NotInTimeError as error:
        pods = space.names(resources.PODS)
        raise RefusalError(
            f"no cluster to strike: {error}; pods: {pods} (can pods be dialled from here?)"
        ) from error
    return [assert_consistent(space, document) for document in made]


class _Teller:
    """Prints a line with the time since `begin`."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def begin(self) -> None:
        """Count from here."""
        self._began = time.monotonic()

    def __call__(self, line: str) -> None:
        print(f"{duration(time.monotonic() - self._began)}  {line}", flush=True)


@contextmanager
def _told_to_stop(run: Run, say: Callable[[str], None]) -> Iterator[None]:
    """Until the end of the block, Ctrl-C and SIGTERM end the strikes; after that they end everything."""

    def stop(number: int, _frame: object) -> None:
        if run.stop.is_set():
            raise KeyboardInterrupt
        say(f"stopping  because of {signal.Signals(number).name}; once more: without a verdict")
        run.stop.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _seconds(text: str) -> float:
    """`90`, `90s`, `1.5m`, `1h` in seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; write 90s, 10m or 1h")
    return float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[found[2]]


def _count(text: str) -> int:
    if not (text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError("a number of at least 1")
    return int(text)


def _deeds(text: str) -> tuple[Deed, ...]:
    try:
        return tuple(Deed(word) for word in text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}; there are: {', '.join(Deed)}") from error
