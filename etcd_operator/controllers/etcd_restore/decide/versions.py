"""Which versions of etcd start on a restored snapshot: its own minor version, and the next one."""

from semver import Version

from etcd_operator.api.restores import Verified
from etcd_operator.errors import InvalidSpec
from etcd_operator.versions import can_restore, minors_that_start_on, parse_version, starts_on

OLDEST = Version(3, 4)
"""The oldest etcd whose backups can be restored: 3.5.10, the first that raises revisions, starts on them."""


def version_problem(snapshot: Verified, wanted: str) -> str:
    """Why a cluster of the version `wanted` (empty: that of the backup) cannot start; empty if it can."""
    found = snapshot.etcd_version if Version.is_valid(snapshot.etcd_version) else ""
    if found and Version.parse(found) < OLDEST:
        return (
            f"a backup of etcd {found} cannot be restored: the first etcd that raises revisions is 3.5.10, "
            "which starts on data of etcd 3.4 or later"
        )
    if not wanted and (snapshot.check != "manifest" or not found):
        return (
            "the exact version of the snapshot is not known, because it has no manifest: set "
            f"spec.clusterTemplate.spec.version{f' to one of {minors_that_start_on(found)}' if found else ''}"
        )
    version = wanted or found
    try:
        release = parse_version(version)
    except InvalidSpec as error:
        return f"an EtcdCluster cannot run etcd {version} ({error}): set spec.clusterTemplate.spec.version"
    if release.build:
        return f"etcd {version} is not a release: set spec.clusterTemplate.spec.version to a release"
    if not can_restore(version):
        field = "spec.clusterTemplate.spec.version"
        return f"etcdutl {version} cannot raise revisions: set {field} to 3.5.10 or later"
    if found and not starts_on(version, found):
        return (
            f"a backup of etcd {found} can be restored to etcd {minors_that_start_on(found)}, not to etcd "
            f"{version}"
        )
    return ""
