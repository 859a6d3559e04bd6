"""URLs of stores: what each part means, and what is refused before anything is sent."""

import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from etcd_operator.storage.directory import Directory
from etcd_operator.storage.errors import InvalidURL, MissingSDK
from etcd_operator.storage.retries import Attempts
from etcd_operator.storage.s3_client import Options, connect, parse_options
from etcd_operator.storage.urls import open_store


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")


@pytest.mark.parametrize(
    ("url", "root", "name"),
    [
        ("/backups/a.db", "/backups", "a.db"),
        ("file:///backups/a%20b.db", "/backups", "a b.db"),
        ("file://localhost/backups/a.db", "/backups", "a.db"),
        ("/backups/a%20b?c#d.db", "/backups", "a%20b?c#d.db"),
        ("/backups/", "/backups", ""),
        ("/a.db", "/", "a.db"),
        ("a.db", ".", "a.db"),
        ("backups/a.db", "backups", "a.db"),
        ("..", "..", ""),
        ("/backups/..", "/backups/..", ""),
    ],
)
def test_a_path_is_a_folder_and_a_name(url: str, root: str, name: str) -> None:
    store, found = open_store(url)
    assert isinstance(store, Directory)
    assert (repr(store), found) == (f"Directory({root!r})", name)


@pytest.mark.parametrize(
    ("url", "store", "name"),
    [
        ("s3://bucket/a/b.db?region=eu-west-1", "S3", "a/b.db"),
        ("s3://bucket?region=eu-west-1", "S3", ""),
        ("s3://bucket/?region=eu-west-1", "S3", ""),
        ("s3://bucket/a/?region=eu-west-1", "S3", "a"),
        ("s3://bucket/a%2Fb%3F?region=eu-west-1", "S3", "a/b?"),
        ("gs://bucket/a/b.db", "GCS", "a/b.db"),
        ("azblob://bucket/a/b.db", "Azure", "a/b.db"),
    ],
)
def test_the_host_is_the_bucket(monkeypatch: pytest.MonkeyPatch, url: str, store: str, name: str) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", "account")
    opened, found = open_store(url)
    assert (repr(opened), found) == (f"{store}('bucket')", name)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "path of the store is empty"),
        ("file://backups/a.db", "three slashes"),
        ("file:///a?b=c", "without a query"),
        ("ftp://bucket/a", "No store has URLs that start with ftp://. Use file, s3, gs or azblob."),
        ("s3:///a", "s3://BUCKET/NAME"),
        ("s3://bucket:80/a", "no port"),
        ("gs://-bucket/a", "BUCKET has letters"),
        ("gs://bucket/a?endpoint=b", "must not have options"),
        ("s3://key:planted@bucket/a", "must not contain credentials"),
        ("s3://bucket/a#b", "%23"),
        ("s3://[bucket/a", "malformed"),
        ("s3://bucket/a?token=planted", "unknown options"),
        ("s3://bucket/a?region=a&region=b", "twice"),
        ("s3://bucket/a?disableSSL=yes&endpoint=b", "disableSSL of the URL must be true or false"),
        ("s3://bucket/a?disableSSL=true", "needs an endpoint"),
        ("s3://bucket/a?disableSSL=true&endpoint=https://b", "contradicts"),
        ("s3://bucket/a?endpoint=https://key:planted@b", "must not contain credentials"),
        ("s3://bucket/a?sse=none", "must be one of AES256, aws:kms"),
        ("s3://bucket/a?sseKMSKeyID=a", "needs sse=aws:kms"),
        ("s3://bucket/a?endpoint=:::", "No client of S3 can be made"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused(url: str, message: str) -> None:
    with pytest.raises(InvalidURL, match=message) as caught:
        open_store(url)
    assert "planted" not in str(caught.value)


def test_a_bundle_of_authorities_that_is_missing_is_noticed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", "/missing.pem")
    with pytest.raises(InvalidURL, match=r"AWS_CA_BUNDLE names /missing\.pem, which cannot be read"):
        open_store("s3://bucket/a?endpoint=https://127.0.0.1:1")[0].stat("a")
    open_store("s3://bucket/a?endpoint=http://127.0.0.1:1")


def test_a_profile_that_is_missing_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nope")
    with pytest.raises(InvalidURL, match=r"\(nope\) could not be found\. Correct the URL"):
        open_store("s3://bucket/a?region=a")[0].stat("a")


@pytest.mark.parametrize("end", ["\n", "\r\n", " "])
def test_a_line_break_at_the_end_of_a_credential_is_removed(
    monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT"):
        monkeypatch.setenv(name, f"planted{end}")
    monkeypatch.setenv("UNRELATED", f"kept{end}")
    store, _ = open_store("s3://bucket/a?region=a")
    found = store._client._request_signer._credentials  # type: ignore[attr-defined]
    assert (found.access_key, found.secret_key) == ("planted", "planted")
    store, _ = open_store("azblob://bucket/a")
    assert store._client.credential.account_name == "planted"  # type: ignore[attr-defined]
    assert os.environ["AZURE_STORAGE_KEY"] == "planted"
    assert os.environ["UNRELATED"] == f"kept{end}"


def test_the_options_of_a_url() -> None:
    query = {
        "region": "eu-west-1",
        "endpoint": "minio:9000/",
        "s3ForcePathStyle": "false",
        "disableSSL": "true",
        "sse": "aws:kms",
        "sseKMSKeyID": "key",
    }
    options = parse_options(query)
    assert options.endpoint_url == "http://minio:9000"
    assert options.region == "eu-west-1"
    assert options.path_style is False
    assert options.encryption == {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "key"}


@pytest.mark.parametrize(
    ("options", "url"),
    [
        (Options(), "https://bucket.s3.eu-west-1.amazonaws.com/a"),
        (Options(path_style=True), "https://s3.eu-west-1.amazonaws.com/bucket/a"),
        (Options(endpoint="minio:9000"), "https://minio:9000/bucket/a"),
        (Options(endpoint="http://minio:9000"), "http://minio:9000/bucket/a"),
        (Options(endpoint="minio:9000", path_style=False), "https://bucket.minio:9000/a"),
    ],
)
def test_buckets_are_in_the_path_where_hosts_have_no_names_for_them(options: Options, url: str) -> None:
    def asked(request: Any, **_: object) -> None:
        raise AskedError(request.url)

    client = connect(replace(options, region="eu-west-1"), Attempts(1.0))
    client.meta.events.register("before-send.s3", asked)
    with pytest.raises(AskedError, match=f"^{re.escape(url)}$"):
        client.head_object(Bucket="bucket", Key="a")


class AskedError(Exception):
    """In the place of a request."""


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    monkeypatch.setitem(sys.modules, "google.cloud.storage", None)
    with pytest.raises(MissingSDK, match="boto3"):
        open_store("s3://bucket/a")
    with pytest.raises(MissingSDK, match="google-cloud-storage"):
        open_store("gs://bucket/a")
