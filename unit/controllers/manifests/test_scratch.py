"""How much the pods of the operator may keep in scratch volumes: limits only where nothing exceeds them."""

from typing import Any

import pytest

from etcd_operator.api.meta import RawObject
from etcd_operator.formats import MIB
from unit.controllers.manifests.backups import SIZE, seed_job_of, verification_job_of
from unit.controllers.manifests.cases import PLAIN_PERSISTENT
from unit.controllers.manifests.test_golden import MANIFESTS

URL = "s3://b/one.db"
OF_MEMBERS = ("ephemeral-pod", "ephemeral-seed", "persistent-replica-set-seed")
TRIAL = 2 * SIZE + 256 * MIB
"""What `archive.trial.scratch` requires."""


def limits(found: Any) -> dict[str, int | None]:
    """The scratch volumes in a manifest, with their limits in MiB."""
    if isinstance(found, list):
        return {name: size for each in found for name, size in limits(each).items()}
    if not isinstance(found, dict):
        return {}
    if "emptyDir" in found:
        limit = found["emptyDir"].get("sizeLimit")
        return {found["name"]: int(limit.removesuffix("Mi")) if limit else None}
    return limits(list(found.values()))


def test_volumes_without_a_limit_are_those_of_members_and_their_seeds() -> None:
    """A seed that is evicted may be the only copy of the data, and its own data has no limit either."""
    found = {name: limits(manifest) for name, manifest in MANIFESTS.items()}
    unlimited = {name for name, sizes in found.items() if None in sizes.values()}
    assert unlimited
    assert all(name.startswith(OF_MEMBERS) for name in unlimited)
    assert any("scratch" in sizes for sizes in found.values())


@pytest.mark.parametrize(
    ("job", "needed"),
    [
        pytest.param(verification_job_of(URL), 0, id="hashes are computed from a stream"),
        pytest.param(verification_job_of(URL, etcd_image="e:v3.6.16"), TRIAL, id="test restore"),
        pytest.param(seed_job_of(PLAIN_PERSISTENT, is_root_owned=False), SIZE, id="restore in place"),
    ],
)
def test_a_limit_is_above_what_the_command_keeps(job: RawObject, needed: int) -> None:
    limit = limits(job)["scratch"]
    assert limit is not None
    assert 2 * needed + 32 * MIB < limit * MIB < 2 * needed + 800 * MIB  # XFS allocates ahead


def test_a_restore_of_unknown_size_has_no_limit() -> None:
    assert limits(seed_job_of(PLAIN_PERSISTENT, is_root_owned=False, size=0))["scratch"] is None
