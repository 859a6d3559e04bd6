"""Clusters that are upgraded against the fakes: what tests of upgrades share."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from unit.fakes.apiserver import Json, Kind
from unit.fakes.apiserver.kinds import CLAIMS
from unit.passes.bench import Bench
from unit.passes.bodies import COREOS, IMPROBABLE, ephemeral, persistent

BOTH = pytest.mark.parametrize("kind", [COREOS, IMPROBABLE], ids=["ephemeral", "persistent"])


def of(kind: Kind, version: str, size: int = 3) -> tuple[Kind, Json]:
    """A cluster of one version."""
    made = ephemeral if kind is COREOS else persistent
    return made(size=size, version=version)


def set_version(made: Bench, kind: Kind, version: str, **spec: int) -> None:
    """Edit the version in the spec."""
    made.edit(kind, "c", {"spec": {"version": version, **spec}})


def make_leader(made: Bench, name: str) -> None:
    """Have etcd elect another leader before the operator looks."""
    etcd = made.etcd.etcd
    with etcd.changed:
        etcd.leader = etcd.member(name)


def messages(made: Bench, reason: str) -> list[str]:
    """Of all Events with this reason, sorted."""
    return sorted(event["message"] for event in made.events() if event["reason"] == reason)


def versions(made: Bench) -> list[str]:
    """The versions that run, by number of the member."""
    return [member.version for member in made.etcd.etcd.members if member.is_running]


def members(made: Bench) -> list[tuple[str, int]]:
    """etcd's list."""
    return [(member.name, member.id) for member in made.etcd.etcd.members]


def claims(made: Bench) -> list[str]:
    """The uids of all claims."""
    return [claim["metadata"]["uid"] for claim in made.api.objects.select(CLAIMS)]


def last(kind: Kind) -> str:
    """The member that is upgraded first."""
    return "c-0002" if kind is COREOS else "c-2"


def image(version: str) -> str:
    return f"quay.io/coreos/etcd:v{version}"


def wait_in_vain(made: Bench) -> None:
    """Let more than two minutes pass in large steps: passes are not needed for what happens meanwhile.

    One step is for the clients, which leave a member before it is touched.
    """
    assert made.operator is not None
    for _ in range(5):
        made.drain()
        made.operator.schedule.advance(40.0)
    made.drain()


@contextmanager
def never_two_away(made: Bench) -> Iterator[None]:
    """Meanwhile two of three members run after every step of the fakes."""
    step = made.step

    def watched() -> bool:
        moved = step()
        assert len(made.etcd.running) >= 2, made.story()
        return moved

    made.step = watched  # type: ignore[method-assign]
    yield
    made.step = step  # type: ignore[method-assign]
