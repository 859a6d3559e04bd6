"""The pod that runs one etcd, as both API groups share it.

etcd is PID 1 and gets time to hand its leadership over when it is stopped. There is no
liveness or readiness probe: a probe tied to quorum takes all members away at the very
moment they are needed (see the operations guide's questions and answers). A readiness gate
takes none away, because services publish members that are not ready, too: it tells the
disruption budget which members serve.
"""

import math
from decimal import Decimal, InvalidOperation

from etcd_operator.api.meta import RawObject
from etcd_operator.api.podkeys import PodKeys
from etcd_operator.api.podtemplate import PodTemplate
from etcd_operator.render.security import Security

STOP_SECONDS = 30
"""A leader that is stopped hands over within 7 s; the rest is reserve for slow disks."""

DATA_VOLUME = "etcd-data"


def etcd_pod_spec(
    template: PodTemplate,
    container: RawObject,
    *,
    keys: PodKeys,
    security: Security,
    data_volume: RawObject,
    extra: RawObject,
) -> RawObject:
    """The spec of a member's pod.

    container: the `etcd` container without what the template decides.
    marks: names the condition that the operator sets while the member serves.
    data_volume: the source of the volume `etcd-data`.
    extra: more fields of the pod spec (hostname, hostAliases ...).
    """
    rights: RawObject = {"securityContext": security.container}
    spec: RawObject = {
        "containers": [{**container, **_resources(template), **_LAST_WORDS, **rights}],
        "readinessGates": [{"conditionType": keys.serves}],
        "volumes": [{"name": DATA_VOLUME, **data_volume}],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": STOP_SECONDS,
        "automountServiceAccountToken": False,
        # Dozens of variables for services that etcd never asks for, some named ETCD_...: etcd would
        # read those as configuration.
        "enableServiceLinks": False,
        "securityContext": security.pod,
    }
    if template.affinity:
        spec["affinity"] = template.affinity
    if template.node_selector:
        spec["nodeSelector"] = template.node_selector
    if template.tolerations:
        spec["tolerations"] = list(template.tolerations)
    if template.topology_spread_constraints:
        spec["topologySpreadConstraints"] = list(template.topology_spread_constraints)
    if template.priority_class_name:
        spec["priorityClassName"] = template.priority_class_name
    return {**spec, **extra}


# Why etcd refused to start stands in its log only; so it comes into the pod's status as well.
_LAST_WORDS: RawObject = {"terminationMessagePolicy": "FallbackToLogsOnError"}


def _resources(template: PodTemplate) -> RawObject:
    return {"resources": template.resources} if template.resources else {}


def go_max_procs(resources: RawObject) -> int | None:
    """How many threads etcd's runtime shall use: the CPU limit rounded down, at least 1.

    None without a readable limit.
    """
    limit = resources.get("limits", {}).get("cpu")
    if limit is None:
        return None
    text = str(limit)
    scale = Decimal("0.001") if text.endswith("m") else Decimal(1)
    try:
        return max(1, math.floor(Decimal(text.removesuffix("m")) * scale))
    except InvalidOperation:
        return None
