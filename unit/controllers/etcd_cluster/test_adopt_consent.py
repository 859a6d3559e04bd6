"""Adoptions of what belongs to others: by the record of an EtcdCluster, or by the namespace of a Service."""

from unit.controllers.etcd_cluster.test_adopt import Make
from unit.fakes.apiserver.kinds import SERVICES
from unit.passes.bench import bench
from unit.passes.bodies import MAKERS, ephemeral, persistent

ADOPTABLE = "etcd.improbable.io/adoptable-by"


@MAKERS
def test_members_of_another_etcd_cluster_are_adopted_only_once_it_is_permitted_there(make: Make) -> None:
    with bench() as made:
        victim, body = make("victim", 1, version="3.6.16")
        made.start()
        made.create(victim, body)
        made.settle((victim, "victim"))
        kind, thief = persistent(adopt={"endpoints": [f"http://{made.etcd.etcd.members[0].endpoint}"]})
        made.create(kind, thief)
        made.run_until(lambda: made.reason(kind) == "AdoptionRefused")
        made.wait(60.0)
        message = made.condition(kind, "Degraded")["message"]
        assert "is that of the EtcdCluster default/victim" in message
        assert (
            f"kubectl annotate etcdclusters.{victim.group} victim --namespace default {ADOPTABLE}=default/c"
            in message
        )
        assert made.status(kind).get("clusterID", "") == ""

        made.edit(victim, "victim", {"metadata": {"annotations": {ADOPTABLE: "default/c"}}})
        made.run_until(lambda: made.status(kind).get("clusterID", "") != "")


def test_members_of_another_namespace_are_adopted_only_if_their_service_permits_it() -> None:
    with bench() as made:
        made.api.add_namespace("prod")
        made.api.objects.create(SERVICES, "prod", {"metadata": {"name": "old"}, "spec": {}})
        kind, body = ephemeral(adopt={"endpoints": ["http://old-0.old.prod.svc:2379"]})
        made.start()
        made.create(kind, body)
        made.run_until(lambda: made.reason(kind) == "AdoptionRefused")
        message = made.condition(kind, "Degraded")["message"]
        assert f"kubectl annotate service old --namespace prod {ADOPTABLE}=default/c" in message

        consent = {"metadata": {"annotations": {ADOPTABLE: "default/c"}}}
        made.api.objects.patch(SERVICES, "prod", "old", consent, "merge")
        made.run_until(lambda: "no member of etcd answers at" in made.condition(kind, "Degraded")["message"])
