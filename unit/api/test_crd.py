import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from etcd_operator.api import backup_schedules, backups, coreos, improbable, restores, users
from etcd_operator.api.definitions.crd import Manifest, crds
from etcd_operator.api.definitions.limits import UNSUPPORTED_FIELDS
from etcd_operator.api.definitions.schema import Schema, at, fields, of_type, piece

CRDS = {crd["metadata"]["name"]: crd for crd in crds()}
PERSISTENT = CRDS["etcdclusters.etcd.improbable.io"]
PEER = CRDS["etcdpeers.etcd.improbable.io"]
BACKUP = CRDS["etcdbackups.etcd.improbable.io"]
SCHEDULE = CRDS["etcdbackupschedules.etcd.improbable.io"]
RESTORE = CRDS["etcdrestores.etcd.improbable.io"]
ROLE = CRDS["etcdroles.etcd.improbable.io"]
USER = CRDS["etcdusers.etcd.improbable.io"]
EPHEMERAL = CRDS["etcdclusters.coreos.com"]
FRAME = {"apiVersion", "kind", "metadata", "metadata.name", "spec", "status"}
RAW = "raw"
UNTYPED = {"size", *(f"spec.{field}" for field in UNSUPPORTED_FIELDS)}
"""Fields of the coreos.com schema that are not in the type of its spec."""


def _schema(crd: Manifest) -> Schema:
    (version,) = crd["spec"]["versions"]
    schema: Schema = version["schema"]["openAPIV3Schema"]
    return schema


def _declared(kind: Any, path: str) -> Iterator[tuple[str, str]]:
    """Paths of a type as msgspec reports them, independent of the code under test; RAW for raw objects."""
    node = msgspec.inspect.type_info(kind) if isinstance(kind, type) else kind
    if isinstance(node, msgspec.inspect.UnionType):
        for each in node.types:
            if not isinstance(each, msgspec.inspect.NoneType):
                yield from _declared(each, path)
        return
    if isinstance(node, msgspec.inspect.Metadata):
        node = node.type
    if isinstance(node, msgspec.inspect.StructType):
        yield path, ""
        for field in node.fields:
            yield from _declared(field.type, f"{path}.{field.encode_name}")
        if node.tag_field is not None:
            yield f"{path}.{node.tag_field}", ""
    elif isinstance(node, msgspec.inspect.VarTupleType):
        yield path, ""
        yield from ((p, k) for p, k in _declared(node.item_type, f"{path}[]") if p != f"{path}[]" or k)
    elif isinstance(node, msgspec.inspect.DictType) and isinstance(node.value_type, msgspec.inspect.AnyType):
        yield path, RAW
    else:
        yield path, ""


@pytest.mark.parametrize(
    ("crd", "spec", "status", "more"),
    [
        (PERSISTENT, improbable.ClusterSpec, improbable.ClusterStatus, set()),
        (PEER, improbable.PeerSpec, improbable.PeerStatus, set()),
        (BACKUP, backups.BackupSpec, backups.BackupStatus, set()),
        (SCHEDULE, backup_schedules.ScheduleSpec, backup_schedules.ScheduleStatus, set()),
        (RESTORE, restores.RestoreSpec, restores.RestoreStatus, set()),
        (ROLE, users.RoleSpec, users.RoleStatus, set()),
        (USER, users.UserSpec, users.UserStatus, set()),
        (
            EPHEMERAL,
            coreos.ClusterSpec,
            coreos.ClusterStatus,
            UNTYPED,
        ),
    ],
    ids=CRDS,
)
def test_the_schema_has_every_field_of_the_types_and_no_other(
    crd: Manifest, spec: type, status: type, more: set[str]
) -> None:
    declared = {**dict(_declared(spec, "spec")), **dict(_declared(status, "status"))}
    raw = tuple(path.removesuffix("[]") for path, kind in declared.items() if kind == RAW)
    expected = {path for path in declared if not path.endswith("[]")} | set(raw)
    present = {path for path in fields(_schema(crd)) if not path.startswith(tuple(f"{r}." for r in raw))}
    present = {path for path in present if not path.startswith(tuple(f"{r}[]" for r in raw))}
    assert present - FRAME - more == expected - FRAME


@pytest.mark.parametrize("crd", CRDS.values(), ids=CRDS)
def test_only_wanted_defaults_are_in_the_schema(crd: Manifest) -> None:
    spec = "spec.clusterTemplate.spec" if crd == RESTORE else "spec"
    claim = f"{spec}.storage.volumeClaimTemplate"
    found = {path for path in fields(_schema(crd)) if "default" in at(_schema(crd), path)}
    without = (EPHEMERAL, BACKUP, SCHEDULE, ROLE, USER)
    assert found == (set() if crd in without else {f"{claim}.accessModes", f"{claim}.volumeMode"})


@pytest.mark.parametrize("crd", CRDS.values(), ids=CRDS)
def test_a_definition_has_no_field_that_the_api_server_drops(crd: Manifest) -> None:
    """Tools that compare manifests with what is stored would report it as changed for ever."""
    assert "preserveUnknownFields" not in crd["spec"]


@pytest.mark.parametrize("crd", CRDS.values(), ids=CRDS)
def test_every_field_has_a_description(crd: Manifest) -> None:
    raw = {
        path
        for path in fields(_schema(crd))
        if re.search(
            r"(volumeClaimTemplate|ffinity|resources|securityContext)\.|"
            r"(tolerations|Constraints|networkPolicy\.(clients|metrics))\[",
            path,
        )
    }
    undescribed = {path for path in fields(_schema(crd)) if not at(_schema(crd), path).get("description")}
    assert undescribed - raw == {"apiVersion", "kind", "metadata", "metadata.name"}
    assert _schema(crd)["description"]


@pytest.mark.parametrize("crd", CRDS.values(), ids=CRDS)
def test_no_python_name_reaches_users(crd: Manifest) -> None:
    found = set(re.findall(r"\b[a-z]+_[a-z_]+\b", str(crd)))
    assert found <= set(improbable.RESERVED_LABELS), "labels of pods have such names, too"


@pytest.mark.parametrize("crd", CRDS.values(), ids=CRDS)
def test_a_schema_has_no_key_that_a_crd_may_not_have(crd: Manifest) -> None:
    for path in ("", *fields(_schema(crd))):
        node = at(_schema(crd), path)
        assert "$ref" not in node, path
        assert "title" not in node, path
        assert not ("properties" in node and "additionalProperties" in node), path
        assert "type" in node or "x-kubernetes-int-or-string" in node, path


def _unlimited(schema: Schema, path: str) -> Iterator[str]:
    limits = {"string": "maxLength", "array": "maxItems"}
    kind = "string" if "x-kubernetes-int-or-string" in schema else schema["type"]
    if kind in limits and not {limits[kind], "enum"} & schema.keys():
        yield path
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        yield path
    for name, below in schema.get("properties", {}).items():
        yield from _unlimited(below, f"{path}.{name}")
    if "items" in schema:
        yield from _unlimited(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from [] if "maxProperties" in schema else [path]
        yield from _unlimited(schema["additionalProperties"], f"{path}{{}}")


@pytest.mark.parametrize("crd", CRDS.values(), ids=CRDS)
def test_every_text_list_and_map_has_a_limit(crd: Manifest) -> None:
    """Except what a rule refuses, whatever its content, and what only the operator writes."""
    refused = tuple(f"spec.{field}" for field in UNSUPPORTED_FIELDS)
    parts = ("status",) if crd["spec"]["names"]["kind"] == "EtcdPeer" else ("spec", "status")
    found = {path for part in parts for path in _unlimited(at(_schema(crd), part), part)}
    assert {path for path in found if crd != EPHEMERAL or not path.startswith(refused)} == set()


def test_columns_read_fields_that_exist() -> None:
    for crd in CRDS.values():
        (version,) = crd["spec"]["versions"]
        for column in version["additionalPrinterColumns"]:
            path = re.sub(r"\[\?.*?\)]", "[]", column["jsonPath"]).strip(".")
            if path != "metadata.creationTimestamp":
                assert at(_schema(crd), path)["type"] in {column["type"], "string"}, column


def test_each_call_gives_schemas_of_its_own() -> None:
    first, second = crds(), crds()
    assert first == second
    _schema(first[0])["properties"]["spec"].clear()
    assert crds() == second


def test_a_field_that_may_be_none_is_one_that_may_be_absent() -> None:
    size = at(of_type(coreos.ClusterSpec), "size")
    assert {**size, "description": ""} == {"type": "integer", "minimum": 1, "maximum": 100, "description": ""}


def test_a_comment_above_a_field_or_at_its_end_describes_it() -> None:
    spec = of_type(backup_schedules.ScheduleSpec)
    assert at(spec, "suspend")["description"].startswith("While true, no new backups are started; ")
    assert at(spec, "retention")["description"].endswith(" Without this field, nothing is deleted.")
    assert at(spec, "retention.maxCount")["description"] == "How many backups are kept."


def test_a_template_has_the_schema_and_the_rules_of_an_etcd_backup() -> None:
    def bare(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: bare(value) for key, value in node.items() if key != "description"}
        return node

    spec, template = at(_schema(BACKUP), "spec"), at(_schema(SCHEDULE), "spec.backupTemplate")
    differs = at(template, "destination.objectURLTemplate")["x-kubernetes-validations"].pop()
    assert "no two backups" in differs["message"]
    assert [rule["rule"] for rule in spec.pop("x-kubernetes-validations")] == ["self == oldSelf"]
    assert bare(template) == bare(spec)


def test_a_minimum_of_zero_is_one() -> None:
    assert at(_schema(SCHEDULE), "spec.failedBackupsHistoryLimit")["minimum"] == 0


def test_a_path_without_a_field_is_an_error() -> None:
    with pytest.raises(KeyError):
        at(piece("Toleration"), "nothing")
