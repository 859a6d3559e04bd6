"""The options of `hack/chaos`, and the plan that they result in. Pure."""

from __future__ import annotations

import argparse
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from localcluster.console import RefusalError

from .schedule import Deed
from .victims import spare

if TYPE_CHECKING:
    Group = argparse._ArgumentGroup  # noqa: SLF001 - it has no other name

DESCRIPTION = """\
A chaos monkey: kills etcd members and the operator at random, then reports what survived.

It creates clusters of its own, of both kinds in turn, in a namespace of their own, writes to them all the
time, and strikes no others. One more, the control, is not struck: what goes wrong there as well is caused
by the machine. (An operator or a node that it strikes serves others, too.) A cluster is struck again only
when it is whole, and never so that it loses its quorum; while that takes time, the log has it.

  hack/chaos                                      ten minutes on the dev cluster of hack/cluster
  hack/chaos --duration 1h --seed 4711            an hour, in the order of that seed
  hack/chaos --kubeconfig PATH                    any Kubernetes whose pods can be dialled from here

what can be done (--deeds); all but delete on clusters of hack/cluster only
  delete      delete a member's pod
  kill        SIGKILL a member's process
  freeze      stop a member's process (SIGSTOP) for --outage
  node-stop   end the kubelet of a node for --outage; its pods keep running
  node-cut    take the link of a node down for --outage
The operator's leader is killed by deletion of its pod, on clusters of hack/cluster by SIGKILL in turn.
The last line is PASSED or FAILED; Ctrl-C ends the run early with a verdict, a second one without.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is requested. Times in seconds; `operator_every` 0 never strikes the operator."""

    seed: int
    seconds: float
    interval: float
    at_once: int
    deeds: tuple[Deed, ...]
    operator_every: float
    operator_deeds: tuple[Deed, ...]
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
        "--seed", type=int, metavar="N", help="strike in the order of this one (default: random)"
    )
    _add_time(faults, "--interval", "30s", "between strikes (default: %(default)s)")
    faults.add_argument(
        "--at-once", type=_count, default=1, metavar="N", help="members per strike (default: %(default)s)"
    )
    faults.add_argument(
        "--deeds",
        type=_deeds,
        metavar="A,B,...",
        help="one of these each time; named twice: twice as often (default: delete,kill,freeze)",
    )
    _add_time(faults, "--outage", "15s", "how long freeze, node-stop, node-cut last (default: %(default)s)")
    _add_time(faults, "--kill-operator-every", "60s", "0: never (default: %(default)s)")
    faults.add_argument(
        "--beyond-quorum",
        action="store_true",
        help="do not preserve a quorum, nor wait for health; losses of ephemeral clusters are not judged",
    )


def _add_verdict(judged: Group) -> None:
    _add_time(judged, "--patience", "5m", "for a recovery (default: %(default)s)")
    _add_time(
        judged,
        "--max-quorum-loss",
        "10s",
        "that a strike may cause, beside the control's (default: %(default)s)",
    )
    judged.add_argument("--keep", action="store_true", help="keep the clusters also when all is well")


def _add_time(group: Group, name: str, default: str, text: str) -> None:
    group.add_argument(name, type=_seconds, default=default, metavar="TIME", help=text)


def plan(options: argparse.Namespace, *, nodes: int) -> Plan:
    """Return what is requested, if it is possible; nodes: how many can be broken, 0 of other clusters."""
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
