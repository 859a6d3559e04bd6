"""`spec.networkPolicy` of EtcdClusters that is refused."""

from unit.api.contract.case import Case, Manifest

_PEER = "name pods, with podSelector, namespaceSelector or both, or else addresses, with ipBlock"
BOTH = {"podSelector": {}, "ipBlock": {"cidr": "10.0.0.0/8"}}


def networks(base: Manifest, spec: str = "spec") -> tuple[Case, ...]:
    """For a resource of either group. spec: the path of the spec of an EtcdCluster in it."""
    at = f"{spec.replace('/', '.')}.networkPolicy"
    return (
        Case(
            typed="networkPolicy.clients: []",
            base=base,
            changes={f"{spec}/networkPolicy/clients": []},
            sees=f"{at}.clients: Invalid value: 0: {at}.clients in body should have at least 1 items",
        ),
        *(
            Case(
                typed=f"networkPolicy.{field}: [{peer}]",
                base=base,
                changes={f"{spec}/networkPolicy/{field}": [value]},
                sees=f"{at}.{field}[0]: Invalid value: {_PEER}",
            )
            for field, peer, value in (
                ("clients", "{}", {}),
                ("metrics", "a podSelector and an ipBlock", BOTH),
            )
        ),
    )
