"""etcd versions: read, written and compared in one place.

Users write `3.6.16` or `v3.6.16`; values carry `3.6.16`, which is compared as a `semver.Version`;
only the tag of an image has the `v` again.
"""

from collections.abc import Iterable

from semver import Version

from etcd_operator.api.definitions.limits import NEWEST_MINOR, OLDEST_MINOR
from etcd_operator.errors import InvalidSpec


def parse_version(text: str) -> Version:
    """Read a version with or without a leading `v`.

    Raises InvalidSpec, with a sentence that names what is accepted.
    """
    try:
        version = Version.parse(text.removeprefix("v"))
    except ValueError as error:
        raise InvalidSpec(
            f"version {text!r} is not a version of etcd: write three numbers, such as 3.6.16"
        ) from error
    if version.major != 3 or not OLDEST_MINOR <= version.minor <= NEWEST_MINOR:
        raise InvalidSpec(
            f"version {text!r} is not supported: choose one from 3.{OLDEST_MINOR} to 3.{NEWEST_MINOR}"
        )
    return version


def image_of(repository: str, version: str) -> str:
    """The image that runs a version (without `v`): `repository:vX.Y.Z`, the tag of etcd's official images."""
    return f"{repository}:v{version}"


def is_agreed(cluster_version: str, running: Iterable[str]) -> bool:
    """Whether etcd's cluster version is the one that members of these versions agree on.

    That is the minor version of the lowest of them, as `X.Y.0`. While no version is known, any is.
    """
    known = [Version.parse(version) for version in running if Version.is_valid(version)]
    return not known or cluster_version == f"{min(known).major}.{min(known).minor}.0"


def can_restore(version: str) -> bool:
    """Whether `etcdutl snapshot restore` of this version can raise revisions.

    `--bump-revision` and `--mark-compacted` came with 3.5.10; before 3.5 there is no etcdutl.
    """
    return Version.parse(version) >= Version(3, 5, 10)


def starts_on(version: str, backup: str) -> bool:
    """Whether etcd `version` starts on the data of a backup that etcd `backup` has sent.

    It has to be of the same minor version, or of the next one: etcd neither reads what a later minor version
    has written nor skips one. Both have to be versions.
    """
    return Version.parse(version).minor - Version.parse(backup).minor in (0, 1)


def minors_that_start_on(backup: str) -> str:
    """The same in words: `3.5 or 3.6`. Also of a build of etcd whose version is none by semver: 3.6.16.1."""
    major, minor = backup.split(".")[:2]
    return f"{major}.{minor} or {major}.{int(minor) + 1}"


_FIRST_WITH_ETCDUTL = (3, 5)
_FOR_OLDER = "3.5.35"


def restoring(version: str) -> str | None:
    """The version whose etcd and etcdutl restore a snapshot of `version`: the same, or for 3.4 a 3.5.

    None if the text is not the version of a release, for which there is no image.
    """
    if not Version.is_valid(version):
        return None
    parsed = Version.parse(version)
    if parsed.build is not None:
        return None
    return version if (parsed.major, parsed.minor) >= _FIRST_WITH_ETCDUTL else _FOR_OLDER
