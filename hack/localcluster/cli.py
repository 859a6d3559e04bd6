"""The command line: `hack/cluster`.

Answers go to stdout, progress and complaints to stderr; exit status 0 means done, 1 refused, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from argparse import SUPPRESS, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from . import external, faults, instance, operatorimage, requirements, status
from .console import RefusalError, progress
from .instance import Instance
from .paths import Cache
from .plan import MAX_NODES

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - it has no other name

_DESCRIPTION = """Bring up a real Kubernetes on this Linux machine, without a container engine.

  first time    hack/cluster setup && hack/cluster up      (builds for about 8 minutes)
  use it        eval "$(hack/cluster status | tail -1)"
  otherwise     hack/cluster --kubeconfig PATH up          (checks and uses an existing cluster)
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status."""
    options = parser().parse_args(arguments)
    try:
        return int(options.run(options) or 0)
    except RefusalError as error:
        print(f"hack/cluster: {error}", file=sys.stderr)
        return 1


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    top = argparse.ArgumentParser(
        prog="hack/cluster", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    top.set_defaults(name=os.environ.get("ETCD_OPERATOR_CLUSTER") or "dev", kubeconfig=None)
    _add_common(top)
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    _add(commands, "setup", _setup, "install the Debian packages and the Go toolchain that are missing")
    build = _add(commands, "build", _build, "build all programs and images that are not there yet")
    _add_extras(build, "build")
    up = _add(commands, "up", _up, "start the cluster, repair it, or change its number of nodes")
    up.add_argument("--nodes", type=_count, help=f"1 to {MAX_NODES} (default: as many as there are, else 1)")
    _add(commands, "down", _down, "remove the cluster and everything that belongs to it")
    report = _add(
        commands, "status", _status, "print the cluster's state and how to use it; exit 1 if it is not usable"
    )
    report.add_argument("--json", action="store_true", help="as JSON, for programs (docs/development.md)")
    _add(commands, "kubeconfig", _kubeconfig, "print the path of the kubeconfig")
    listing = _add(
        commands,
        "images",
        _images,
        "list the images that the nodes have; with --with stores, first load those of the stores",
    )
    _add_extras(listing, "before that, build and load")
    load = _add(commands, "load-image", _load_image, "load an image archive into all nodes")
    load.add_argument("file", type=Path, help="a tar: OCI layout or docker-archive")
    image = _add(
        commands, "build-image", _build_image, "build the operator's image and print its archive's path"
    )
    image.add_argument(
        "--base", help="base image for the Dockerfile (default: one built here, or the public one)"
    )
    image.add_argument("--tag", default=operatorimage.TAG, help="name of the image (default: %(default)s)")
    image.add_argument(
        "--context", type=Path, default=operatorimage.CONTEXT, help="folder with the Dockerfile"
    )
    _add_faults(commands)
    return top


def _add_common(command: argparse.ArgumentParser) -> None:
    """Accept these options before and after the command's name."""
    command.add_argument(
        "--name",
        type=_name,
        default=SUPPRESS,
        help="local cluster; each has its own addresses (default: $ETCD_OPERATOR_CLUSTER, else dev)",
    )
    command.add_argument(
        "--kubeconfig",
        type=Path,
        default=SUPPRESS,
        metavar="PATH",
        help="use this existing cluster instead of a local one ($KUBECONFIG is ignored)",
    )


def _add(
    commands: Commands, name: str, run: Callable[[Namespace], int | None], text: str
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    command.set_defaults(run=run)
    _add_common(command)
    return command


def _add_extras(command: argparse.ArgumentParser, verb: str) -> None:
    command.add_argument(
        "--with",
        dest="extra",
        choices=("stores",),
        help=f"{verb} an S3 gateway and a GCS emulator, too: the stores for tests of backups",
    )


def _add_faults(commands: Commands) -> None:
    fault = commands.add_parser(
        "fault", help="break the running cluster on purpose", description=_FAULT_DESCRIPTION
    )
    _add_common(fault)
    kinds = fault.add_subparsers(required=True, metavar="FAULT")
    for component in faults.COMPONENTS:
        command = _add(
            kinds, component, _fault_component, f"stop the {component}, as a crash would, or start it"
        )
        command.add_argument("action", choices=("stop", "start"))
        command.set_defaults(component=component)
    for name, (node_fault, text) in _NODE_FAULTS.items():
        command = _add(kinds, name, _fault_node, text)
        command.add_argument("node", help="such as node-1")
        command.set_defaults(fault=node_fault)
    for name, (pod_fault, text) in _POD_FAULTS.items():
        command = _add(kinds, name, _fault_pod, text)
        command.add_argument("pod", metavar="NAMESPACE/POD")
        command.add_argument("container", nargs="?", default=faults.CONTAINER, help="(default: %(default)s)")
        command.set_defaults(fault=pod_fault)


_FAULT_DESCRIPTION = """\
Break the running cluster on purpose, for tests and benchmarks. A fault affects only this cluster. Every
fault except `kill` lasts until the opposite command (start, node-start, node-mend, thaw). Faults also work
while the API server is down.
"""
_NODE_FAULTS = {
    "node-stop": (faults.stop_node, "end the kubelet of a node; its pods keep running"),
    "node-start": (faults.start_node, "start the kubelet of a node again"),
    "node-cut": (faults.cut_node, "take the network link of a node down"),
    "node-mend": (faults.mend_node, "take the network link of a node up again"),
}
_POD_FAULTS = {
    "freeze": (faults.freeze, "stop all processes of a container (SIGSTOP)"),
    "thaw": (faults.thaw, "let the processes of a frozen container continue (SIGCONT)"),
    "kill": (faults.kill, "kill the main process of a container (SIGKILL)"),
}


def _setup(_: Namespace) -> None:
    requirements.setup(Cache.of_user())


def _build(options: Namespace) -> None:
    requirements.check_programs(requirements.IMAGE_PROGRAMS)
    cache = Cache.of_user()
    archives = instance.build(cache)
    if options.extra:
        archives |= instance.build_stores(cache)
    progress(f"{len(archives)} images in {cache.images}, programs in {cache.tools}")


def _up(options: Namespace) -> None:
    cache = Cache.of_user()
    if options.kubeconfig is not None:
        print(_existing(options.kubeconfig, cache).access.line())
        return
    requirements.check_rights()
    requirements.check_programs(requirements.RUN_PROGRAMS | requirements.IMAGE_PROGRAMS)
    requirements.check_kernel()
    cluster = Instance(options.name, cache)
    with cluster.locked():
        cluster.up(options.nodes, instance.build(cache))
    progress(f"cluster {options.name} is up")
    found = status.of(cluster)
    if found is not None:
        print("\n".join(found.lines()))


def _down(options: Namespace) -> None:
    if options.kubeconfig is not None:
        progress(f"{options.kubeconfig} is not ours: nothing to do")
        return
    requirements.check_rights()
    cluster = Instance(options.name, Cache.of_user())
    with cluster.locked():
        cluster.down()
    progress(f"cluster {options.name} is down")


def _status(options: Namespace) -> int:
    cache = Cache.of_user()
    if options.kubeconfig is not None:
        existing = _existing(options.kubeconfig, cache)
        print(json.dumps(existing.document()) if options.json else existing.access.line())
        return 0
    found = status.of(Instance(options.name, cache))
    if found is None:
        down = {"name": options.name, "state": status.DOWN}
        print(json.dumps(down) if options.json else f"cluster {options.name}: {status.DOWN}")
        return 1
    print(json.dumps(found.document()) if options.json else "\n".join(found.lines()))
    return 0 if found.state is status.State.UP else 1


def _kubeconfig(options: Namespace) -> None:
    if options.kubeconfig is not None:
        print(options.kubeconfig.resolve())
        return
    cluster = _running(options)
    print(cluster.state.kubeconfig)


def _images(options: Namespace) -> None:
    cluster = _running(options)
    if options.extra:
        cluster.load_stores()
    for node in cluster.nodes():
        for name, digest in sorted(cluster.store(node).digests().items()):
            print(f"{node.name}  {digest[:19]}  {name}")


def _load_image(options: Namespace) -> None:
    if not options.file.is_file():
        raise RefusalError(f"there is no file {options.file}")
    cluster = _running(options)
    for node in cluster.nodes():
        cluster.store(node).load(options.file)
        progress(f"{options.file} loaded into {node.name}")


def _build_image(options: Namespace) -> None:
    cache = Cache.of_user()
    archive = operatorimage.build(cache, tag=options.tag, base=options.base, context=options.context)
    progress(f"image {options.tag} made; next: hack/cluster load-image {archive}")
    print(archive)


def _fault_component(options: Namespace) -> None:
    act = faults.stop_component if options.action == "stop" else faults.start_component
    act(_running(options), options.component)


def _fault_node(options: Namespace) -> None:
    options.fault(_running(options), options.node)


def _fault_pod(options: Namespace) -> None:
    hit = options.fault(_running(options), options.pod, options.container)
    progress(f"signalled {len(hit)} processes of {options.pod}")


def _running(options: Namespace) -> Instance:
    if options.kubeconfig is not None:
        raise RefusalError("this works on a local cluster only; leave --kubeconfig away")
    cluster = Instance(options.name, Cache.of_user())
    cluster.require_up()
    return cluster


def _existing(kubeconfig: Path, cache: Cache) -> external.Existing:
    found = external.verify(kubeconfig, cache)
    progress(f"the cluster of {kubeconfig} is ready, Kubernetes {found.version}")
    return found


def _name(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?", text):
        raise argparse.ArgumentTypeError("a name has 1 to 32 lower-case letters, digits and dashes")
    return text


def _count(text: str) -> int:
    if not (text.isdigit() and 1 <= int(text) <= MAX_NODES):
        raise argparse.ArgumentTypeError(f"a number of nodes is 1 to {MAX_NODES}")
    return int(text)
