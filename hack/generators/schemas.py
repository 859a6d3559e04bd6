"""`hack/refresh-schemas`: the schemas of Kubernetes' own types, from a running API server.

Writes etcd_operator/api/schemas/core.json: for each type its structural schema as a CustomResourceDefinition
takes it. Run it when the operator moves to a newer Kubernetes, and review the difference.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from generators import tree
from localcluster.console import RefusalError
from localcluster.external import kubectl_program
from localcluster.kubectl import Kubectl
from localcluster.paths import Cache

TARGET = tree.ROOT / "etcd_operator/api/schemas/core.json"
DOCUMENTS = ("/openapi/v3/api/v1", "/openapi/v3/apis/networking.k8s.io/v1")
PACKAGE = "io.k8s.api."
TYPES = (
    "core.v1.Affinity",
    "core.v1.PersistentVolumeClaimSpec",
    "core.v1.PodSecurityContext",
    "core.v1.ResourceRequirements",
    "core.v1.Toleration",
    "core.v1.TopologySpreadConstraint",
    "networking.v1.NetworkPolicyPeer",
)
KEPT = (
    "type",
    "format",
    "enum",
    "required",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
)
# The server describes a quantity as a string, but accepts numbers too.
QUANTITY = {
    "x-kubernetes-int-or-string": True,
    "pattern": r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$",
}

Schema = dict[str, Any]


def main() -> int:
    """Write the file; the exit code."""
    parser = argparse.ArgumentParser(prog="hack/refresh-schemas", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True, metavar="PATH", help="of that server")
    options = parser.parse_args()
    try:
        kubectl = Kubectl(program=kubectl_program(Cache.of_user()), kubeconfig=options.kubeconfig)
        answers = [json.loads(kubectl("get", "--raw", path)) for path in DOCUMENTS]
    except RefusalError as error:
        print(f"hack/refresh-schemas: {error}", file=sys.stderr)
        return 1
    known = {name: each for answer in answers for name, each in answer["components"]["schemas"].items()}
    TARGET.write_text(text_of(known))
    return 0


def text_of(known: dict[str, Schema]) -> str:
    """The content of the file, from the schemas of an API server by name."""
    types = {name.rpartition(".")[2]: structural(known[PACKAGE + name], known) for name in TYPES}
    return json.dumps(types, separators=(",", ":"), sort_keys=True) + "\n"


def structural(schema: Schema, known: dict[str, Schema]) -> Schema:
    """`schema` with references resolved, and without what a CRD may not or need not contain."""
    if "allOf" in schema:
        (schema,) = schema["allOf"]
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return dict(QUANTITY) if name.endswith(".Quantity") else structural(known[name], known)
    result = {key: schema[key] for key in KEPT if key in schema}
    if "properties" in schema:
        result["properties"] = {k: structural(v, known) for k, v in schema["properties"].items()}
    for below in ("items", "additionalProperties"):
        if below in schema:
            result[below] = structural(schema[below], known)
    return result
