"""What the system tests deploy as stores (e2e/support/stores.py), as far as it is pure."""

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

import pytest

from e2e.support import stores
from e2e.support.stores import GCS, PLANTED, S3, DeployedStore, Kind
from e2e.support.testbed import Testbed, TestbedError
from etcd_operator.storage.s3_client import parse_options

KINDS = pytest.mark.parametrize("kind", [S3, GCS], ids=lambda kind: kind.name)
KEY = "a b/c+d&e?f#é/one.db"


def deployed(kind: Kind) -> DeployedStore:
    return DeployedStore(space=cast("Any", SimpleNamespace(namespace="e2e-1")), kind=kind, address="10.0.0.7")


def objects(kind: Kind) -> dict[str, dict[str, Any]]:
    return {each["kind"]: each for each in stores.manifests(kind)}


def strings(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from (key, *strings(each))
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)
    else:
        yield str(value)


def test_the_url_of_s3_has_options_that_the_store_knows() -> None:
    for url, host in (
        (deployed(S3).url(KEY), "s3-gateway.e2e-1.svc"),
        (deployed(S3).local_url(KEY), "10.0.0.7"),
    ):
        parts = urlsplit(url)
        options = parse_options(dict(parse_qsl(parts.query)))
        assert (parts.scheme, parts.netloc) == ("s3", stores.BUCKET)
        assert (options.endpoint, options.path_style, options.disable_ssl, options.region) == (
            f"http://{host}:7070",
            True,
            True,
            "us-east-1",
        )
    assert deployed(S3).pod_environment == {}


def test_the_emulator_is_found_by_the_environment() -> None:
    store = deployed(GCS)
    assert urlsplit(store.url(KEY)).query == ""
    assert store.url("a/b.db") == store.local_url("a/b.db") == f"gs://{stores.BUCKET}/a/b.db"
    assert store.pod_environment == {"STORAGE_EMULATOR_HOST": "http://gcs-emulator.e2e-1.svc:4443"}
    assert store.environment == {"STORAGE_EMULATOR_HOST": "http://10.0.0.7:4443"}


def test_a_template_of_names_is_kept_as_it_is() -> None:
    template = "{{ .Namespace }}/{{ .Name }}.db"
    assert deployed(S3).url(template).startswith(f"s3://{stores.BUCKET}/{template}?")


@KINDS
def test_nothing_but_the_secret_has_a_planted_value(kind: Kind) -> None:
    made = objects(kind)
    held = list(strings(made.pop("Secret")))
    assert any(planted in text for planted in PLANTED for text in held)
    assert not any(planted in text for planted in PLANTED for text in strings(list(made.values())))
    store = deployed(kind)
    assert not any(planted in text for planted in PLANTED for text in (store.url("a"), repr(store.bucket)))


@KINDS
def test_the_parts_of_a_store_fit_together(kind: Kind) -> None:
    made = objects(kind)
    (container,) = made["Pod"]["spec"]["containers"]
    assert made["Service"]["spec"]["selector"].items() <= made["Pod"]["metadata"]["labels"].items()
    (port,) = made["Service"]["spec"]["ports"]
    assert port["targetPort"] == container["ports"][0]["containerPort"]
    assert any(argument.endswith(str(port["port"])) for argument in container["args"])
    for variable in container["env"]:
        reference = variable["valueFrom"]["secretKeyRef"]
        assert reference["name"] == made["Secret"]["metadata"]["name"]
        assert reference["key"] in made["Secret"]["stringData"]
    (mount,) = container["volumeMounts"]
    assert any(argument.endswith(mount["mountPath"]) for argument in container["args"])


@KINDS
def test_the_pod_complies_with_the_standard_restricted(kind: Kind) -> None:
    spec = objects(kind)["Pod"]["spec"]
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    security = spec["containers"][0]["securityContext"]
    assert security == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def test_the_planted_credentials_of_google_are_a_document_of_its_sdk() -> None:
    document = json.loads(GCS.secret["credentials.json"])
    assert document["type"] == "authorized_user"
    assert {"client_id", "client_secret", "refresh_token"} <= document.keys()


def test_stores_are_not_loaded_into_a_cluster_of_others() -> None:
    with pytest.raises(TestbedError, match="for local clusters only"):
        Testbed(kubeconfig=cast("Any", None)).load_stores()
