"""The command line: `hack/bench create`, `resize`, `upgrade`, `restore` and `backup`."""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

from benchmark import backups, creation, load, resizing, restoring, secured, upgrade
from benchmark.bed import Bed
from benchmark.verdict import Verdict
from e2e.support.api import Api
from e2e.support.operators import DeployedOperator, Operator, configured_kind
from e2e.support.process import OperatorProcess
from e2e.support.testbed import Testbed, TestbedError, find_testbed

Part = Callable[[Bed, int, Callable[[str], None]], Iterator[Verdict]]

PARTS: dict[str, dict[str, Part]] = {
    "create": {
        "floor": creation.against_floor,
        "frozen": creation.beside_frozen,
        "many": load.many_at_once,
        "rest": load.at_rest,
        "tls": secured.with_tls,
    },
    "resize": {
        "ephemeral": resizing.ephemeral_members,
        "persistent": resizing.persistent_members,
        "quorum": resizing.quorum_reported,
    },
    "upgrade": upgrade.parts(upgrade.SIZES, tuple(upgrade.GROUPS)),
    "restore": restoring.parts(),
}

BACKUP = "backup"
"""Needs no Kubernetes."""

DESCRIPTION = """Measure the operator on a local Kubernetes of hack/cluster; compare the figures with budgets.

parts of `create`
  floor   the time from the creation of a cluster of three to three healthy voters, divided by
          the time for the same pods, claims and services when they are
          created directly                                               budget: <= 1.25
  many    20 clusters at once: time, CPU, memory, API writes             budget: <= 2 writes per object,
                                                                         < 100 MiB
  frozen  the same time while all members of another cluster hang,
          divided by the time without that cluster                       budget: <= 1.5
  rest    10 settled clusters for two minutes                            budget: 0 writes, 0 LISTs,
                                                                         < 1 % of a core, < 100 MiB
  tls     the same clusters with TLS and without: time to serve, and at
          rest CPU with TLS divided by CPU without                       budget: <= 1.3 at rest

parts of `resize`, each step compared with the same step by hand on plain etcd
  ephemeral   3 -> 5 <= 4 s, 1 -> 3 <= 7 s, 5 -> 3 until the pods are deleted <= 1.5 s,
              a dead member replaced <= 5 s
  persistent  the same resizes; a deleted pod serves again: ratio to the time by hand <= 1.25;
              a member with a lost claim replaced <= 20 s
  quorum      the status reports a lost quorum                        budget: <= 5 s

parts of `upgrade`, each in both API groups and with 1, 3 and 5 members, under 100 puts per second, compared
with the same upgrade by hand, in which the leader is killed
  patch   3.5.34 -> 3.5.35
  minor   a cluster bootstrapped at 3.5.35 -> 3.6.16 -> 3.7.3
          budgets: no acknowledged write lost; no cluster ID, member ID or UID changed; with 3 and 5 members
          no failed put, at most 0.25 s without an acknowledged put, at most 1 s without a leader; three
          members and a patch in 10 s (no budget with --watches: etcd's stop waits up to 7 s for open streams)

parts of `restore`, an EtcdRestore to three members, alternating with the same restore by hand: three pods
that run etcdutl, one for each member, then the three pods of the members. Five runs of small and lost take
about 8 minutes on two cores
  small   2 MiB, from the creation of the EtcdRestore until three members serve: <= 1.5 x by hand, <= 15 s
  large   --mib MIB (default: 256; the budget is for 2048: about 5 minutes for each run, and 20 GiB of disk):
          <= 1.25 x the slower of a download and etcdutl, three at once as plain processes
  lost    two of three pods of a coreos.com cluster with backups are deleted: from the moment at which both
          are gone until a member serves: <= 10 s

parts of `backup`, a snapshot of one local etcd into a folder, alternating with `etcdctl snapshot save`;
it needs no Kubernetes, and 8 GiB in the folder for temporary files
  2MiB, 200MiB, 2GiB   time: ratio <= 1.25 (not for 2MiB); the largest resident size for 2GiB at most
                       64 MiB above that for 2MiB; what 100 puts per second notice: no budget

The deployed operator is measured, or with ETCD_OPERATOR_E2E_OPERATOR=process one that is started as a process
for the run. The local Kubernetes is the one that $ETCD_OPERATOR_CLUSTER names, else dev.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; 0 if every budget was kept, 1 if not, 2 without a test bed."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.what != "upgrade" and (options.sizes or options.groups):
        parser.error(f"{options.what} has no --sizes and no --groups")
    if options.what != "upgrade" and options.watches:
        parser.error(f"{options.what} has no --watches")
    if options.what != "restore" and options.mib:
        parser.error(f"{options.what} has no --mib")
    known: Container[str] = backups.SIZES if options.what == BACKUP else PARTS[options.what]
    unknown = [name for name in options.only or () if name not in known]
    if unknown:
        parser.error(f"{options.what} has no part {', '.join(unknown)}")
    verdicts: list[Verdict] = []
    # Commands are printed on stdout, as in tests; here stdout is for the figures alone.
    try:
        with redirect_stdout(sys.stderr):
            for verdict in _backup(options) if options.what == BACKUP else _on_cluster(options):
                verdicts.append(verdict)
                _progress(verdict.line())
    except TestbedError as error:
        print(f"hack/bench: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps([verdict.document() for verdict in verdicts], indent=2))
    else:
        print("\n".join(verdict.line() for verdict in verdicts))
    return 0 if all(verdict.is_kept for verdict in verdicts) else 1


def _on_cluster(options: argparse.Namespace) -> Iterator[Verdict]:
    parts = PARTS[options.what]
    if options.what == "upgrade":
        groups = options.groups or tuple(upgrade.GROUPS)
        parts = upgrade.parts(options.sizes or upgrade.SIZES, groups, options.watches)
    if options.what == "restore":
        parts = restoring.parts(options.mib or restoring.LARGE_MIB)
    testbed = find_testbed()
    with _operator(testbed) as operator:
        bed = Bed(testbed, Api(testbed), operator)
        for name in options.only or parts:
            yield from parts[name](bed, options.runs, _progress)


def _backup(options: argparse.Namespace) -> Iterator[Verdict]:
    with backups.backups() as measured:
        for name in options.only or backups.SIZES:
            yield from measured.measure(name, options.runs, _progress)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hack/bench", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=(*PARTS, BACKUP), help="what to measure")
    parser.add_argument("--runs", type=_count, default=5, metavar="N", help="runs of each part (default: 5)")
    parser.add_argument("--only", action="append", metavar="PART", help="only this part; may be repeated")
    only = "for upgrade: only this {}; may be repeated"
    sizes, groups = only.format("number of members"), only.format("API group")
    parser.add_argument("--sizes", action="append", type=int, choices=upgrade.SIZES, help=sizes)
    parser.add_argument("--groups", action="append", choices=upgrade.GROUPS, help=groups)
    watches = "for upgrade: so many watch streams on each member (default: none)"
    parser.add_argument("--watches", type=_count, default=0, metavar="N", help=watches)
    parser.add_argument("--mib", type=_count, metavar="MIB", help="for restore: the size of the large backup")
    parser.add_argument(
        "--json", action="store_true", help="print the figures as JSON; progress is on stderr"
    )
    return parser


@contextmanager
def _operator(testbed: Testbed) -> Iterator[Operator]:
    """The operator to measure, ready."""
    kubectl = testbed.kubectl()
    if configured_kind() == "deployment":
        deployed = DeployedOperator(testbed, kubectl)
        deployed.wait_ready()
        yield deployed
        return
    with tempfile.TemporaryDirectory(prefix="etcd-operator-bench-") as folder:
        process = OperatorProcess(kubectl, Path(folder))
        process.prepare()
        process.start()
        try:
            yield process
        finally:
            process.stop()


def _count(text: str) -> int:
    if not (text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError("a number of at least 1")
    return int(text)


def _progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
