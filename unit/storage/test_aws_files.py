"""What pods take of the AWS files in a Secret: keys and a region, no programs and no other identity."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.awsrequest import AWSRequest
from botocore.exceptions import ConnectTimeoutError

from etcd_operator.controllers.shared.manifests.command import store_env
from etcd_operator.storage.errors import AccessDenied
from etcd_operator.storage.retries import Attempts
from etcd_operator.storage.s3_client import connect, parse_options

KEYS = "aws_access_key_id = mounted\naws_secret_access_key = planted\n"
Mount = Callable[..., None]


@pytest.fixture
def mount(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Mount:
    """Sets the environment of a pod, and mounts a Secret with these files."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for entry in store_env():
        monkeypatch.setenv(entry["name"], entry["value"])
    monkeypatch.setenv("ETCD_OPERATOR_AWS_FOLDER", str(tmp_path))

    def write(**files: str) -> None:
        for name, text in files.items():
            (tmp_path / name).write_text(f"[default]\n{text}")

    return write


def client(**query: str) -> Any:
    return connect(parse_options(query), Attempts(stall=1.0))


def test_the_keys_and_the_region_of_the_secret_are_used(mount: Mount) -> None:
    mount(credentials=KEYS, config="region = eu-west-3\noutput = json\n")
    made = client()
    found = made._request_signer._credentials
    assert (found.access_key, found.secret_key) == ("mounted", "planted")
    assert made.meta.region_name == "eu-west-3"
    assert client(region="eu-west-1").meta.region_name == "eu-west-1"


@pytest.mark.parametrize("name", ["credentials", "config"])
def test_a_program_that_the_secret_names_never_runs(mount: Mount, name: str, tmp_path: Path) -> None:
    mount(**{name: f"region = eu-west-3\ncredential_process = touch {tmp_path}/ran\n"})
    with pytest.raises(AccessDenied, match="have credential_process, which is not supported"):
        client()
    assert not (tmp_path / "ran").exists()


def test_the_identity_of_the_machine_is_used_only_on_request(
    mount: Mount, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def send(_: object, request: AWSRequest) -> None:
        asked.append(request.url)
        raise ConnectTimeoutError(endpoint_url=request.url)

    monkeypatch.setattr("botocore.httpsession.URLLib3Session.send", send)
    assert client(region="eu-west-1")._request_signer._credentials is None
    assert asked == []
    mount(config="region = eu-west-1\ncredential_source = Ec2InstanceMetadata\n")
    client()
    assert {url.partition("/latest/")[0] for url in asked} == {"http://169.254.169.254"}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"credentials": "aws_access_key_id = only\n"},
            r"have no keys in \[default\]\. Use aws",
        ),
        ({"config": "region = eu-west-1\n"}, r"have no keys in \[default\]"),
        ({"credentials": KEYS, "config": "role_arn = arn:x\n"}, "have role_arn, which is not supported"),
        ({"config": "credential_source = Environment\n"}, "Only Ec2InstanceMetadata is"),
        ({"credentials": "planted\n"}, "The file credentials of the AWS credentials cannot be read"),
    ],
)
def test_what_pods_do_not_use_is_refused(mount: Mount, files: dict[str, str], message: str) -> None:
    mount(**files)
    with pytest.raises(AccessDenied, match=message) as refused:
        client()
    assert "planted" not in str(refused.value)
