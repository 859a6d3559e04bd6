"""Where the Job runs that restores a backup for a cluster that exists."""

from dataclasses import replace

import msgspec

from etcd_operator.controllers.shared.manifests.affinity import REQUIRED
from unit.controllers.etcd_cluster.decide.builders import persistent
from unit.controllers.manifests.backups import seed_job_of


def test_it_does_not_run_where_the_seed_could_not() -> None:
    """The members run beside it: where none may share a node, it takes another one, or waits."""
    apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "db"}}}
    cluster = persistent()
    template = msgspec.structs.replace(
        cluster.pod_template, affinity={"podAntiAffinity": {REQUIRED: [apart]}}
    )
    job = seed_job_of(replace(cluster, pod_template=template), is_root_owned=False)
    assert job["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"][REQUIRED] == [apart]


def test_on_a_volume_of_root_it_runs_as_root() -> None:
    """As etcd, whose processes it has to see: the default of the operator's image is another user."""
    pod = seed_job_of(persistent(), is_root_owned=True)["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsUser"] == 0
    (main,), (programs,) = pod["containers"], pod["initContainers"]
    assert "runAsUser" not in {**main["securityContext"], **programs["securityContext"]}
