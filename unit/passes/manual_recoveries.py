"""Persistent clusters that lost a majority, and are recovered on request."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from etcd_operator.api.recoveries import REVISION_BUMP
from etcd_operator.controllers.etcd_cluster.decide.recovery.requested import SILENCE
from unit.fakes.apiserver.kinds import CLAIMS, PODS, SERVICES
from unit.passes.bench import PEER_LABEL, Bench, bootstrapped
from unit.passes.bodies import IMPROBABLE, persistent
from unit.passes.expected import assert_finished

RECOVER = "etcd.improbable.io/recover"
TOKEN = "etcd.improbable.io/cluster-token"
CLIENTS = "etcd.improbable.io/clients"
NAME = "c0de/c-2/1"
LOST = ("the reply is lost and it dies", "the reply is lost and it lives on")


def pod_of(made: Bench, name: str) -> str:
    """The name of the pod of a member, also of an ephemeral one."""
    found = made.api.objects.select(PODS, labels=f"{PEER_LABEL}={name}")
    return str(found[0]["metadata"]["name"]) if found else name


def lose(made: Bench, *numbers: int) -> None:
    """Claims and pods go for good."""
    for number in numbers:
        made.lose_claim(f"c-{number}")
    made.world.settle()


def ask(made: Bench, name: str | None = NAME) -> None:
    """As `kubectl annotate`."""
    made.edit(IMPROBABLE, "c", {"metadata": {"annotations": {RECOVER: name}}})


def is_reason(made: Bench, reason: str) -> Callable[[], bool]:
    return lambda: made.reason(IMPROBABLE) == reason


def message(made: Bench) -> str:
    return str(made.condition(IMPROBABLE, "Degraded")["message"])


def lost_for_long(made: Bench) -> None:
    """Two of three are gone, that is reported, and it is long ago."""
    lose(made, 0, 1)
    made.run_until(is_reason(made, "QuorumLost"))
    made.clock.advance(SILENCE + 1.0)


def fetching(made: Bench) -> None:
    """A recovery is under way, and its seed is held up."""
    made.etcds.holds_seeds = "save"
    lost_for_long(made)
    ask(made)
    made.run_until(lambda: "c-3" in made.objects()["pods"])


def assert_recovered(
    made: Bench,
    numbers: tuple[int, ...] = (0, 1, 3),
    kept: tuple[str, ...] = ("c-2",),
    *,
    generation: int = 1,
) -> None:
    """One new cluster with all the data; nothing of the old one but claims that are annotated as given up."""
    etcd = made.etcd.etcd
    assert etcd.keys[b"key"] == (b"value", 2)
    assert etcd.revision >= REVISION_BUMP
    assert_finished(made, IMPROBABLE, len(numbers), numbers, kept=kept)
    for name in kept:
        annotations = made.get(CLAIMS, name)["metadata"]["annotations"]
        assert annotations["etcd.improbable.io/given-up-by"].startswith("c0de/c-")
        assert annotations["etcd.improbable.io/given-up-at"].endswith("Z")
    status = made.status(IMPROBABLE)
    recovery = status["recovery"]
    assert (recovery["generation"], recovery["replaces"]) == (generation, "c0de")
    assert status["clusterID"] != "c0de"
    assert made.condition(IMPROBABLE, "DataLossPossible")["status"] == "True"
    selector = made.get(SERVICES)["spec"]["selector"]
    assert selector[CLIENTS] == recovery["token"]
    assert made.get(SERVICES, "c-peer")["spec"]["selector"][TOKEN] == recovery["token"]
    assert {p["metadata"]["labels"][TOKEN] for p in made.api.objects.select(PODS)} == {recovery["token"]}


@contextmanager
def lost_and_asked(to: int = 1) -> Iterator[Bench]:
    """One of two is gone, the recovery is asked for, and there is no operator just now."""
    with bootstrapped(*persistent(size=2)) as made:
        lose(made, 0)
        made.run_until(is_reason(made, "QuorumLost"))
        made.clock.advance(SILENCE + 1.0)
        made.kill()
        made.edit(IMPROBABLE, "c", {"spec": {"replicas": to}})
        ask(made, "c0de/c-1/1")
        yield made


def until_recovered(made: Bench) -> None:
    """The new cluster has its ID recorded, and nothing of the old one runs."""
    made.run_until(
        lambda: made.status(IMPROBABLE)["clusterID"] != "c0de" and "c-1" not in made.objects()["pods"]
    )


def silence_two(made: Bench) -> None:
    """Two members' processes hang, and that is long ago."""
    for name in ("c-0", "c-1"):
        made.etcd.etcd.freeze(name)
    made.run_until(is_reason(made, "QuorumLost"))
    made.clock.advance(SILENCE + 1.0)
