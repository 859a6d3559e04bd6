"""`spec.adopt` and `spec.selfHosted` of EtcdClusters that are refused."""

from typing import Any

from unit.api.contract.case import ABSENT, EPHEMERAL, Case, Manifest, changed

ADOPT = "spec/adopt"
GOOD = {"endpoints": ["http://10.0.0.1:2379"]}
_FORM = (
    "must be the client URL of a member, with its port and without TLS, like "
    "http://my-etcd-0.my-etcd.ns.svc:2379"
)
_RECORDED = {"members": [{"id": "c0de", "endpoint": "10.0.0.1:2379", "peerURLs": ["http://10.0.0.1:2380"]}]}
_BOOTSTRAPPED = {"clusterID": "ada", "bootstrap": {"members": ["c-0"], "token": "token-1"}}
_RECOVERING = {
    "generation": 1,
    "source": {"type": "ClaimBackup", "cluster": "c"},
    "authority": "Creation",
    "revision": 0,
    "version": "3.6.16",
    "seed": "c-0",
    "token": "token-1",
    "replaces": "ada",
}
_RESTORING = {**_RECOVERING, "replaces": ""}
_RESUMED = {"clusterID": "ada", "bootstrap": {"members": [], "token": "token-1"}}
_KEEP = (
    "spec: Invalid value: the adoption is in progress: keep spec.adopt with its endpoints until "
    "status.adoption.finished is true; to turn back, set spec.adopt.mode to Leave"
)


def _adopting(base: Manifest) -> Manifest:
    return changed(base, {ADOPT: GOOD, "status/adoption": _RECORDED, "status/clusterID": "ada"})


def _edit(typed: str, base: Manifest, value: Any, *, sees: str) -> Case:
    return Case(typed=typed, base=base, changes={ADOPT: value}, edits=True, sees=sees)


def adoptions(base: Manifest) -> tuple[Case, ...]:
    """For a resource of either group."""
    return (
        *(
            Case(
                typed=f"adopt.endpoints: [{url}]",
                base=base,
                changes={ADOPT: {"endpoints": [url]}},
                sees=f'spec.adopt.endpoints[0]: Invalid value: "{url}": {_FORM}',
            )
            for url in ("https://10.0.0.1:2379", "10.0.0.1:2379", "http://10.0.0.1")
        ),
        Case(
            typed="adopt.endpoints: []",
            base=base,
            changes={ADOPT: {"endpoints": []}},
            sees="spec.adopt.endpoints: Invalid value: 0: spec.adopt.endpoints in body should have at least "
            "1 items",
        ),
        Case(
            typed="adopt without endpoints",
            base=base,
            changes={ADOPT: {}},
            sees="spec.adopt.endpoints: Required value",
        ),
        Case(
            typed="adopt.mode: Forever",
            base=base,
            changes={ADOPT: {**GOOD, "mode": "Forever"}},
            sees='spec.adopt.mode: Unsupported value: "Forever": supported values: "Complete", "Join", '
            '"Leave"',
        ),
        *(
            _edit(
                typed,
                changed(base, {"status": status}),
                GOOD,
                sees="spec: Invalid value: a cluster that has been bootstrapped cannot adopt another one: "
                "create another resource",
            )
            for typed, status in (
                ("adopt, for a cluster that has been bootstrapped", _BOOTSTRAPPED),
                ("adopt, while a backup is being restored", {"recovery": _RESTORING}),
                ("adopt, while the cluster is being recovered", {**_RESUMED, "recovery": _RECOVERING}),
                (
                    "adopt again, after the adoption",
                    {**_RESUMED, "adoption": {**_RECORDED, "finished": True}},
                ),
            )
        ),
        _edit("no adopt, during the adoption", _adopting(base), ABSENT, sees=_KEEP),
        _edit(
            "other adopt.endpoints, during the adoption",
            _adopting(base),
            {"endpoints": ["http://10.0.0.2:2379"]},
            sees=_KEEP,
        ),
    )


SELF_HOSTED_CASES = (
    Case(
        typed="selfHosted without bootMemberClientEndpoint",
        base=EPHEMERAL,
        changes={"spec/selfHosted": {}},
        sees="spec.selfHosted.bootMemberClientEndpoint: Required value",
    ),
    Case(
        typed="selfHosted.bootMemberClientEndpoint: https://10.0.0.1:2379",
        base=EPHEMERAL,
        changes={"spec/selfHosted": {"bootMemberClientEndpoint": "https://10.0.0.1:2379"}},
        sees='spec.selfHosted.bootMemberClientEndpoint: Invalid value: "https://10.0.0.1:2379": ' + _FORM,
    ),
    Case(
        typed="selfHosted.skipBootMemberRemoval",
        base=EPHEMERAL,
        changes={
            "spec/selfHosted": {
                "bootMemberClientEndpoint": "http://10.0.0.1:2379",
                "skipBootMemberRemoval": True,
            }
        },
        sees="spec.selfHosted.skipBootMemberRemoval: Invalid value: spec.selfHosted.skipBootMemberRemoval "
        "is not supported yet: remove it",
    ),
    Case(
        typed="adopt and selfHosted",
        base=EPHEMERAL,
        changes={
            ADOPT: GOOD,
            "spec/selfHosted": {"bootMemberClientEndpoint": "http://10.0.0.1:2379"},
        },
        sees="spec: Invalid value: spec.adopt, spec.selfHosted and spec.restore are alternatives: set one of "
        "them",
    ),
)
