"""The independent check of the system tests (e2e/support/buckets.py) sees what stores do."""

from collections.abc import Iterator

import pytest

from e2e.support.buckets import Bucket, GCSBucket, S3Bucket
from unit.storage.cases import Case, Cases
from unit.storage.real import CREDENTIALS, REAL


@pytest.fixture(params=["s3", *(pytest.param(kind, marks=pytest.mark.stores) for kind in REAL)])
def case(request: pytest.FixtureRequest, cases: Cases) -> Case:
    return cases.fresh(request.param)


@pytest.fixture
def bucket(case: Case, request: pytest.FixtureRequest) -> Bucket:
    return bucket_of(case, request.node.callspec.params["case"], "bucket")


def bucket_of(case: Case, kind: str, name: str) -> Bucket:
    assert case.server is not None
    make = GCSBucket if kind == "fake-gcs-server" else S3Bucket
    return make(f"http://{case.server.address}", name, CREDENTIALS)


NAME = "a b/c+d%2F=é&?#/3.6.1_00000000000000ff_etcd.backup"


def test_what_a_store_put_is_seen(case: Case, bucket: Bucket) -> None:
    assert bucket.names() == []
    case.store.put(NAME, [case.large])
    case.store.put("a/b", [b"small"])
    assert bucket.names() == sorted([NAME, "a/b"])
    assert bucket.content(NAME) == case.large


def test_what_is_replaced_is_read(case: Case, bucket: Bucket) -> None:
    case.store.put(NAME, [b"whole"])
    bucket.put(NAME, b"damaged")
    assert b"".join(case.store.read(NAME)) == b"damaged"


def test_a_bucket_that_is_created_can_be_used(case: Case, request: pytest.FixtureRequest) -> None:
    bucket = bucket_of(case, request.node.callspec.params["case"], "another")
    bucket.create()
    case.open("another", 20.0).put("a", [b"x"])
    assert bucket.names() == ["a"]


def test_an_upload_that_is_not_finished_is_seen(case: Case, bucket: Bucket) -> None:
    if not isinstance(bucket, S3Bucket):
        pytest.skip("only S3 lists its uploads")
    seen = []

    def chunks() -> Iterator[bytes]:
        yield case.large
        seen.append(bucket.unfinished())

    case.store.put("a", chunks())
    assert seen == [["a"]]
    assert bucket.unfinished() == []
