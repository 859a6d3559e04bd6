"""The first step of a seed whose data does not come from a running etcd (`etcd-operator seed`)."""

from collections.abc import Iterable

from etcd_operator.api.meta import RawObject
from etcd_operator.controllers.etcd_cluster.manifests.options import from_annotation
from etcd_operator.controllers.etcd_cluster.manifests.steps import (
    COMMAND_ANNOTATION,
    FETCH,
    SNAPSHOT_FILE,
    SNAPSHOT_PATH,
    SNAPSHOT_VOLUME,
)
from etcd_operator.controllers.shared.manifests.command import REPORT_PATH, PodVolume, container
from etcd_operator.controllers.shared.manifests.security import as_etcd
from etcd_operator.pods.contract import SEED_COMMAND_VARIABLE


def fetch_step(
    spec: RawObject,
    arguments: Iterable[str],
    *,
    image: str,
    env: Iterable[RawObject] = (),
    volumes: Iterable[PodVolume] = (),
) -> RawObject:
    """The container. spec: of the pod of the seed. arguments: where to fetch from, and what."""
    (main,) = spec["containers"]
    words = ["seed", *arguments, f"--file={SNAPSHOT_FILE}", f"--report={REPORT_PATH}", "--json"]
    skips = from_annotation(SEED_COMMAND_VARIABLE, COMMAND_ANNOTATION)
    snapshot: PodVolume = (SNAPSHOT_VOLUME, {}, {"mountPath": SNAPSHOT_PATH})
    pod = spec.get("securityContext", {})
    as_root = {"runAsUser": 0} if as_etcd(pod) != pod else {}
    return {
        **container(FETCH, image, words, [skips, *env], [snapshot, *volumes]),
        **{field: main[field] for field in ("resources",) if field in main},
        # The next step is etcdutl in etcd's image: what is fetched is for its user only.
        "securityContext": {**main.get("securityContext", {}), **as_root},
    }
