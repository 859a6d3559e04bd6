"""Puts the operator's own definitions into the cluster: CRDs and admission policies.

Server-side apply: what is already so is not changed. Missing rights are told in one line and
do not stop the operator, because somebody else may have installed them.
"""

from collections.abc import Iterable
from typing import Any

import structlog

from etcd_operator.api.crd import crds
from etcd_operator.api.meta import RawObject
from etcd_operator.api.policies import policies
from etcd_operator.errors import Forbidden, OperatorError
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.client import Client, PatchKind

log = structlog.get_logger()

_BY_KIND = {
    resource.kind: resource
    for resource in (
        resources.CRDS,
        resources.MUTATING_POLICIES,
        resources.MUTATING_POLICY_BINDINGS,
        resources.VALIDATING_POLICIES,
        resources.VALIDATING_POLICY_BINDINGS,
    )
}


def install(client: Client) -> bool:
    """Apply CRDs and the policies that this API server knows; whether all of it was done."""
    return all([_apply(client, crds()), _apply(client, _known(client, policies()))])


def _known(client: Client, objects: Iterable[RawObject]) -> list[RawObject]:
    """Those whose kind the API server serves; older ones lack mutating policies."""
    known: list[RawObject] = []
    for body in objects:
        resource = _BY_KIND[body["kind"]]
        if client.has_api(f"{resource.group}/{resource.version}", resource.plural):
            known.append(body)
        else:
            log.warning("policy_not_supported", kind=body["kind"], name=body["metadata"]["name"])
    return known


def _apply(client: Client, objects: Iterable[RawObject]) -> bool:
    is_done = True
    for body in objects:
        resource, name = _BY_KIND[body["kind"]], body["metadata"]["name"]
        try:
            client.patch(resource, Key("", name), body, dict[str, Any], kind=PatchKind.APPLY)
        except Forbidden as error:
            log.warning("install_forbidden", kind=resource.kind, name=name, error=str(error))
            is_done = False
        except OperatorError as error:
            log.warning("install_failed", kind=resource.kind, name=name, error=str(error))
            is_done = False
    return is_done
