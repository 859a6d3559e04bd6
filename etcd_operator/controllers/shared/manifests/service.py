"""Services of clusters and members."""

from etcd_operator.api.meta import RawObject

ServicePort = tuple[str, int]


def service(metadata: RawObject, selector: dict[str, str], *ports: ServicePort, headless: bool) -> RawObject:
    """A Service with `ports` in the given order.

    Pods that are not ready are published: peers must find each other before any of them is ready, and
    clients check health themselves.
    """
    spec: RawObject = {
        "selector": selector,
        "ports": [
            {"name": name, "port": port, "targetPort": port, "protocol": "TCP"} for name, port in ports
        ],
        "publishNotReadyAddresses": True,
    }
    if headless:
        spec["clusterIP"] = "None"
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
