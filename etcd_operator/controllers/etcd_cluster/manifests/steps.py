"""The steps of a seed: init containers that copy the data of a survivor before etcd starts on it.

    fetch     etcdctl snapshot save, from the survivor (which needs no quorum for it);
              or a backup, see `manifests.seed`
    restore   etcdutl snapshot restore, into a new cluster of one, revisions far ahead
    etcd      starts from that data

etcd's images have no shell, so a step cannot check whether it is done. The kubelet runs both again
after a restart of the node; by then the survivor is stopped or deleted, and the data directory exists,
so both would fail forever. Therefore the first words of their commands come from annotations of the pod. When
the seed serves, the annotations change, and from then on the steps only print a version and succeed.
"""

from collections.abc import Iterable

from etcd_operator.api.meta import RawObject
from etcd_operator.api.recoveries import REVISION_BUMP
from etcd_operator.api.tls import PLAIN, MemberTls
from etcd_operator.controllers.etcd_cluster.manifests import tls_pod
from etcd_operator.controllers.etcd_cluster.manifests.options import from_annotation
from etcd_operator.controllers.shared.manifests.command import REPORT_PATH, PodVolume, container
from etcd_operator.controllers.shared.manifests.pod import DATA_VOLUME
from etcd_operator.controllers.shared.manifests.security import as_etcd
from etcd_operator.controllers.shared.manifests.urls import CLIENT_PORT, PEER_PORT, url
from etcd_operator.pods.contract import SEED_COMMAND_SKIP, SEED_COMMAND_VARIABLE

FETCH = "fetch"
RESTORE = "restore"

COMMAND_ANNOTATION = "etcd.seed-command"
OPTION_ANNOTATION = "etcd.seed-option"
RUN_STEPS = {COMMAND_ANNOTATION: "snapshot", OPTION_ANNOTATION: "--write-out=simple"}
SKIP_STEPS = {COMMAND_ANNOTATION: SEED_COMMAND_SKIP, OPTION_ANNOTATION: "--"}
"""`etcdutl version -- ANYTHING`: every version from 3.5 on prints its version and exits with 0."""

SNAPSHOT_VOLUME = "snapshot"
SNAPSHOT_PATH = "/var/etcd-snapshot"
SNAPSHOT_FILE = f"{SNAPSHOT_PATH}/survivor.db"


def add_steps(  # noqa: PLR0913 -- all that the steps depend on
    spec: RawObject,
    *,
    survivor: str,
    name: str,
    host: str,
    data_dir: str,
    token: str,
    fetch: RawObject | None,
    bump: int = REVISION_BUMP,
    secured: MemberTls = PLAIN,
) -> None:
    """Add the steps to the pod of a member, which has one container.

    survivor: host of the member whose data is copied. host: of the seed itself. fetch: the first step,
    where it does not copy from a survivor. bump: how much revisions increase. secured: of the members.
    """
    (main,) = spec["containers"]
    restoring = _restoring(
        name, url(host, PEER_PORT, is_secure=secured.has_secure_peers), data_dir, token, bump
    )
    source = url(survivor, CLIENT_PORT, is_secure=secured.is_dialed)
    flags = [f"--endpoints={source}", *tls_pod.client_flags(secured)]
    spec["initContainers"] = [
        fetch or _step(main, FETCH, "etcdctl", "save", *flags),
        _step(main, RESTORE, "etcdutl", "restore", *restoring),
    ]
    spec["volumes"].append({"name": SNAPSHOT_VOLUME, "emptyDir": {}})


def _step(main: RawObject, step: str, tool: str, verb: str, *more: str) -> RawObject:
    names = ((SEED_COMMAND_VARIABLE, COMMAND_ANNOTATION), ("SEED_OPTION", OPTION_ANNOTATION))
    mounts = [mount for mount in main["volumeMounts"] if mount["name"] in (DATA_VOLUME, tls_pod.VOLUME)]
    return {
        "name": step,
        "image": main["image"],
        "command": [
            f"/usr/local/bin/{tool}",
            f"$({SEED_COMMAND_VARIABLE})",
            "$(SEED_OPTION)",
            verb,
            SNAPSHOT_FILE,
            *more,
        ],
        "env": [from_annotation(*name) for name in names],
        "volumeMounts": [*mounts, {"name": SNAPSHOT_VOLUME, "mountPath": SNAPSHOT_PATH}],
        **{field: main[field] for field in ("resources", "securityContext") if field in main},
    }


def _restoring(name: str, peer_url: str, data_dir: str, token: str, bump: int) -> list[str]:
    return [
        f"--name={name}",
        f"--data-dir={data_dir}",
        f"--initial-cluster={name}={peer_url}",
        f"--initial-cluster-token={token}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--bump-revision={bump}",
        "--mark-compacted",
    ]


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
