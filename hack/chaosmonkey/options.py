"""The options of `hack/chaos`, and the plan that they result in. Pure."""

from __future__ import annotations

import argparse
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from localcluster.console import RefusalError

from .schedule import FaultKind
from .targets import spare

if TYPE_CHECKING:
    Group = argparse._ArgumentGroup  # noqa: SLF001 - it has no other name

DESCRIPTION = """\
The chaos test: injects random faults into etcd members and the operator, then checks that nothing was lost.

It creates etcd clusters of its own, alternately of both kinds, in a new namespace, and writes to them all the
time. Faults of members affect only these clusters; faults of the operator or of a node also affect other
clusters. One more cluster, the control, receives no faults: it shows what the machine itself causes. A
cluster receives a fault only while all its members are healthy, and so that it keeps its quorum; the
test waits for that and logs it. docs/chaos.md describes the checks.

  hack/chaos                                      ten minutes on the local cluster `dev` of hack/cluster
  hack/chaos --duration 1h --seed 4711            an hour, in the order of that seed
  hack/chaos --kubeconfig PATH                    any Kubernetes whose pod addresses this machine can reach

kinds of fault (--faults); all but delete only on clusters of hack/cluster
  delete      delete a member's pod
  kill        SIGKILL a member's process
  freeze      stop a member's process (SIGSTOP) for --outage
  node-stop   end the kubelet of a node for --outage; its pods keep running
  node-cut    take the link of a node down for --outage
The pod of the leading operator is deleted; on clusters of hack/cluster, in half of the cases at random, its
process is killed (SIGKILL) first. The last line is PASSED or FAILED. Ctrl-C ends the faults, and the checks
follow; a second Ctrl-C ends the run without them.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is requested. Times in seconds; `operator_every` 0 never kills the operator."""

    seed: int
    seconds: float
    interval: float
    at_once: int
    kinds: tuple[FaultKind, ...]
    operator_every: float
    operator_kinds: tuple[FaultKind, ...]
    clusters: int
    size: int
    writes_per_second: float
    beyond_quorum: bool
    patience: float


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    made = argparse.ArgumentParser(
        prog="hack/chaos", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    _add_where(made.add_argument_group("where"))
    _add_what(made.add_argument_group("what"))
    _add_faults(made.add_argument_group("faults"))
    _add_verdict(made.add_argument_group("verdict"))
    return made


def _add_where(where: Group) -> None:
    where.add_argument(
        "--name", help="name of the cluster of hack/cluster (default: $ETCD_OPERATOR_CLUSTER, else dev)"
    )
    where.add_argument("--kubeconfig", type=Path, metavar="PATH", help="use another Kubernetes instead")
    where.add_argument(
        "--operator-namespace", default="etcd-operator", metavar="NAME", help="(default: %(default)s)"
    )
    where.add_argument(
        "--storage-class",
        default="",
        metavar="NAME",
        help="for persistent members (default: the default StorageClass)",
    )


def _add_what(what: Group) -> None:
    what.add_argument("--clusters", type=_count, default=3, metavar="N", help="(default: %(default)s)")
    what.add_argument(
        "--size", type=_count, default=3, metavar="N", help="members of each (default: %(default)s)"
    )
    what.add_argument(
        "--writes", type=_count, default=10, metavar="N", help="per second and cluster (default: %(default)s)"
    )
    _add_time(what, "--duration", "10m", "(default: %(default)s)")


def _add_faults(faults: Group) -> None:
    faults.add_argument(
        "--seed", type=int, metavar="N", help="repeat the faults of a run with this seed (default: random)"
    )
    _add_time(faults, "--interval", "30s", "mean time between faults (default: %(default)s)")
    faults.add_argument(
        "--at-once", type=_count, default=1, metavar="N", help="members per fault (default: %(default)s)"
    )
    faults.add_argument(
        "--faults",
        type=_kinds,
        metavar="A,B,...",
        help="kinds of fault, chosen at random; one that is named twice comes twice as often (default: "
        "delete,kill,freeze; with --kubeconfig: delete)",
    )
    _add_time(faults, "--outage", "15s", "how long freeze, node-stop, node-cut last (default: %(default)s)")
    _add_time(
        faults,
        "--kill-operator-every",
        "60s",
        "mean time between faults of the operator; 0: never (default: %(default)s)",
    )
    faults.add_argument(
        "--beyond-quorum",
        action="store_true",
        help="do not preserve a quorum, and do not wait until members are healthy; lost writes of "
        "ephemeral clusters are then not a failure",
    )


def _add_verdict(judged: Group) -> None:
    _add_time(
        judged, "--patience", "5m", "time in which a cluster must recover from a fault (default: %(default)s)"
    )
    _add_time(
        judged,
        "--max-quorum-loss",
        "10s",
        "longest permitted time without a quorum; time in which the control has no quorum either is not "
        "counted (default: %(default)s)",
    )
    judged.add_argument("--keep", action="store_true", help="keep the clusters even if everything passed")


def _add_time(group: Group, name: str, default: str, text: str) -> None:
    group.add_argument(name, type=_seconds, default=default, metavar="TIME", help=text)


def plan(options: argparse.Namespace, *, nodes: int) -> Plan:
    """Return what is requested, if it is possible; nodes: how many can be broken, 0 of other clusters."""
    is_local = nodes > 0
    kinds = options.faults or (
        (FaultKind.DELETE, FaultKind.KILL, FaultKind.FREEZE) if is_local else (FaultKind.DELETE,)
    )
    for kind in kinds:
        if kind.is_local and not is_local:
            raise RefusalError(f"{kind} works on a cluster of hack/cluster only; with --kubeconfig: delete")
        if kind.is_of_node and nodes == 1:
            raise RefusalError(f"{kind} needs a second node; run: hack/cluster up --nodes 3")
    if not options.beyond_quorum and spare(options.size) < 1:
        raise RefusalError(
            f"a cluster of {options.size} has no member to spare; --size 3, or --beyond-quorum"
        )
    return Plan(
        seed=secrets.randbelow(10**6) if options.seed is None else options.seed,
        seconds=options.duration,
        interval=options.interval,
        at_once=options.at_once,
        kinds=kinds,
        operator_every=options.kill_operator_every,
        operator_kinds=(FaultKind.DELETE, FaultKind.KILL) if is_local else (FaultKind.DELETE,),
        clusters=options.clusters,
        size=options.size,
        writes_per_second=options.writes,
        beyond_quorum=options.beyond_quorum,
        patience=options.patience,
    )


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


def _kinds(text: str) -> tuple[FaultKind, ...]:
    try:
        return tuple(FaultKind(word) for word in text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}; there are: {', '.join(FaultKind)}") from error
