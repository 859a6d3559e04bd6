"""The pod of a member, shared by both API groups.

etcd is PID 1 and has time to transfer leadership when it is stopped. There is no liveness or readiness
probe: a probe that depends on the quorum makes all members unready at the moment they are needed. The
readiness gate does not remove members from Services, which publish members that are not ready; it
only shows the disruption budget which members serve (docs/decisions/005).
"""

import math
from decimal import Decimal, InvalidOperation

from etcd_operator.api.cluster_spec import PodTemplate
from etcd_operator.api.meta import RawObject
from etcd_operator.api.podkeys import PodKeys
from etcd_operator.controllers.shared.manifests.affinity import members_affinity
from etcd_operator.controllers.shared.manifests.command import PodVolume
from etcd_operator.controllers.shared.manifests.security import Security

STOP_SECONDS = 30
"""A leader that is stopped transfers leadership within 7 s; the rest is a reserve for slow disks."""

ETCD_CONTAINER = "etcd"
DATA_VOLUME = "etcd-data"
DATA_DIR = "/var/lib/etcd"
RESTORED_DIR = f"{DATA_DIR}/restored"
"""The data directory of a seed: etcdutl restores only into an empty directory, and the top of a new file
system contains `lost+found`."""


def etcd_pod_spec(
    template: PodTemplate,
    container: RawObject,
    *,
    keys: PodKeys,
    members: RawObject,
    security: Security,
    data_volume: RawObject,
    extra: RawObject,
) -> RawObject:
    """The spec of a member's pod.

    container: the `etcd` container without the fields of the template.
    keys: contains the name of the condition that the operator sets while the member serves.
    members: the label selector of all members' pods.
    data_volume: the source of the volume `etcd-data`.
    extra: more fields of the pod spec (hostname, hostAliases ...).
    """
    context: RawObject = {"securityContext": security.container}
    spec: RawObject = {
        "containers": [{**container, **_resources(template), **_LOG_TAIL, **context}],
        "readinessGates": [{"conditionType": keys.serves}],
        "volumes": [{"name": DATA_VOLUME, **data_volume}],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": STOP_SECONDS,
        "automountServiceAccountToken": False,
        # Variables for Services would include names that begin with ETCD_, which etcd would read as its
        # configuration.
        "enableServiceLinks": False,
        "securityContext": security.pod,
    }
    affinity = members_affinity(template, members)
    if affinity:
        spec["affinity"] = affinity
    if template.topology_spread_constraints:
        spec["topologySpreadConstraints"] = list(template.topology_spread_constraints)
    return {**spec, **scheduling(template), **extra}


def add_volume(spec: RawObject, volume: PodVolume) -> None:
    """Mount one more volume in the pod of a member, which has one container."""
    name, source, mount = volume
    (main,) = spec["containers"]
    main["volumeMounts"].append({"name": name, **mount})
    spec["volumes"].append({"name": name, **source})


def scheduling(template: PodTemplate) -> RawObject:
    """Which nodes a pod may run on, and before which other pods."""
    found: RawObject = {}
    if template.node_selector:
        found["nodeSelector"] = template.node_selector
    if template.tolerations:
        found["tolerations"] = list(template.tolerations)
    if template.priority_class_name:
        found["priorityClassName"] = template.priority_class_name
    return found


# Only etcd's log contains why it refused to start; this copies the tail of the log to the status of the pod.
_LOG_TAIL: RawObject = {"terminationMessagePolicy": "FallbackToLogsOnError"}


def _resources(template: PodTemplate) -> RawObject:
    return {"resources": template.resources} if template.resources else {}


def go_max_procs(resources: RawObject) -> int | None:
    """GOMAXPROCS for etcd: the CPU limit rounded down, at least 1; None without a readable limit."""
    limit = resources.get("limits", {}).get("cpu")
    if limit is None:
        return None
    text = str(limit)
    scale = Decimal("0.001") if text.endswith("m") else Decimal(1)
    try:
        return max(1, math.floor(Decimal(text.removesuffix("m")) * scale))
    except InvalidOperation:
        return None
