"""What only Google Cloud Storage does: upload sessions that keep a part of a part."""

from collections.abc import Iterator

import pytest

from etcd_operator.storage.errors import AccessDenied, StoreError
from etcd_operator.storage.gcs import GCS
from unit.storage.cases import LARGE, PART, Case, Cases
from unit.storage.fake_gcs import FakeGCS, Object
from unit.storage.server import Request, Response, Server, answers_with, loses_reply


@pytest.fixture
def case(cases: Cases) -> Case:
    return cases.fresh("gcs")


@pytest.fixture
def server(case: Case) -> Server:
    assert case.server is not None
    return case.server


@pytest.fixture
def fake(server: Server) -> FakeGCS:
    assert isinstance(server.app, FakeGCS)
    return server.app


def test_the_rest_of_a_part_is_sent_again(case: Case, fake: FakeGCS, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("etcd_operator.storage.gcs.PART_BYTES", 4 * PART)
    fake.persist = PART
    case.store.put("a", [LARGE * 3])
    assert b"".join(case.store.read("a")) == LARGE * 3


def test_what_a_session_has_is_not_sent_again(case: Case, server: Server) -> None:
    server.faults = [loses_reply(times=1, where=case.sends), loses_reply(times=1, where=case.finishes)]
    case.store.put("a", [LARGE])
    assert sum(len(request.body) for request in server.seen if request.method == "PUT") == len(LARGE)


def test_a_session_that_keeps_nothing_makes_no_progress(case: Case, fake: FakeGCS) -> None:
    fake.persist = 0
    with pytest.raises(StoreError, match=r"no progress for 0\.3 s: the store answered 308"):
        case.open("bucket", 0.3).put("a", [LARGE])
    assert fake.unfinished() == []


def test_a_session_that_is_gone_is_reported(case: Case, server: Server, fake: FakeGCS) -> None:
    def chunks() -> Iterator[bytes]:
        yield LARGE
        fake.sessions.clear()
        yield LARGE

    with pytest.raises(StoreError, match=r"session of gs://bucket/a is gone\. Try again"):
        case.store.put("a", chunks())
    assert fake.objects == {}


@pytest.mark.parametrize("step", ["sends", "finishes"])
def test_an_object_that_the_service_completed_too_early_is_removed(
    case: Case, server: Server, fake: FakeGCS, step: str
) -> None:
    fake.is_eager = True
    server.faults = [answers_with(500, times=1, where=getattr(case, step))]
    with pytest.raises(StoreError, match=r"gs://bucket/a was stored with a wrong size\. Check that"):
        case.store.put("a", [LARGE])
    assert fake.objects == {}


def test_what_somebody_else_stored_is_not_removed(case: Case, server: Server, fake: FakeGCS) -> None:
    fake.is_eager = True

    def answer(request: Request) -> Response:
        reply = fake(request)
        if request.headers.get("content-range") == "bytes */*":
            fake.objects["a"] = Object(data=b"other", generation=1, modified=fake.objects["a"].modified)
        return reply

    server.app = answer
    server.faults = [answers_with(500, times=1, where=case.sends)]
    try:
        with pytest.raises(StoreError, match="wrong size"):
            case.store.put("a", [LARGE])
    finally:
        server.app = fake
    assert fake.objects["a"].data == b"other"


def test_each_block_is_read_from_the_same_generation(case: Case, server: Server, fake: FakeGCS) -> None:
    case.store.put("a", [LARGE])
    assert b"".join(case.store.read("a")) == LARGE
    reads = [request.query for request in server.seen if case.reads(request)]
    assert {query["generation"] for query in reads} == {str(fake.objects["a"].generation)}
    assert {query["ifGenerationMatch"] for query in reads} == {query["generation"] for query in reads}


def test_no_more_rights_are_needed_than_those_for_objects(case: Case, server: Server) -> None:
    case.store.put("a", [LARGE])
    assert b"".join(case.store.read("a")) == LARGE
    assert [stored.name for stored in case.store.list("")] == ["a"]
    assert case.store.stat("b") is None
    case.store.delete("a")
    assert {request.path for request in server.seen if "/o" not in request.path} == set()


def test_no_credentials_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    key = tmp_path_factory.mktemp("key") / "key.json"
    key.write_text('{"type": "service_account", "private_key": "planted"}')
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(key))
    with pytest.raises(AccessDenied, match="GOOGLE_APPLICATION_CREDENTIALS") as caught:
        GCS("bucket", stall=1.0).stat("a")
    assert "planted" not in str(caught.value)
