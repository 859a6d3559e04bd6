"""What only S3 and its imitations do: conditions that are not implemented, checksums, rights of their own."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from etcd_operator.storage.errors import AccessDenied, NameTaken, StoreError
from etcd_operator.storage.urls import open_store
from unit.storage.cases import LARGE, Case, Cases, url_of
from unit.storage.server import App, Request, Response, Server, answers_with

DATA = pytest.mark.parametrize("data", [b"small", LARGE])


@pytest.fixture
def case(cases: Cases) -> Case:
    return cases.fresh("s3")


@pytest.fixture
def server(case: Case) -> Iterator[Server]:
    assert case.server is not None
    app = case.server.app
    yield case.server
    case.server.app = app


def is_conditional(request: Request) -> bool:
    return "if-none-match" in request.headers


def content(case: Case) -> bytes:
    return b"".join(case.store.read("a"))


@DATA
def test_a_store_without_conditions_is_used(case: Case, server: Server, data: bytes) -> None:
    server.faults = [answers_with(501, b"<Error><Code>NotImplemented</Code></Error>", where=is_conditional)]
    case.store.put("a", [data])
    assert content(case) == data
    with pytest.raises(NameTaken):
        case.store.put("a", [data])


def without_conditions(app: App) -> App:
    def respond(request: Request) -> Response:
        kept = {name: value for name, value in request.headers.items() if name != "if-none-match"}
        return app(replace(request, headers=kept))

    return respond


@DATA
def test_a_store_that_ignores_conditions_is_looked_at_before(case: Case, server: Server, data: bytes) -> None:
    def chunks() -> Iterator[bytes]:
        yield data
        case.store.put("a", [b"other"])

    server.app = without_conditions(server.app)
    with pytest.raises(NameTaken):
        case.store.put("a", chunks())
    assert content(case) == b"other"
    assert case.unfinished() == []


@DATA
def test_a_name_taken_after_the_last_look_is_not_replaced(case: Case, server: Server, data: bytes) -> None:
    other = case.open("bucket", 19.0)
    app = server.app
    taken: list[bool] = []

    def respond(request: Request) -> Response:
        if is_conditional(request) and not taken:
            taken.append(True)
            bare = {name: value for name, value in request.headers.items() if name != "x-amz-meta-x"}
            put = replace(request, method="PUT", target="/bucket/a", headers=bare, body=b"other")
            assert app(without_writer_id(put)).status == 200
        return app(request)

    server.app = respond
    with pytest.raises(NameTaken):
        case.store.put("a", [data])
    server.app = app
    assert b"".join(other.read("a")) == b"other"
    assert case.unfinished() == []


def without_writer_id(request: Request) -> Request:
    gone = ("if-none-match", "x-amz-meta-etcd-operator-upload", "content-length", "content-type")
    kept = {name: value for name, value in request.headers.items() if name not in gone}
    return replace(request, headers={**kept, "content-length": str(len(request.body))})


@DATA
def test_no_request_has_a_checksum_that_imitations_refuse(case: Case, server: Server, data: bytes) -> None:
    case.store.put("a", [data])
    for request in server.seen:
        assert not [name for name in request.headers if "checksum" in name or "trailer" in name]
        assert request.headers["x-amz-content-sha256"] != "STREAMING-UNSIGNED-PAYLOAD-TRAILER"


@DATA
def test_a_bucket_that_wants_digests_gets_them(case: Case, server: Server, data: bytes) -> None:
    text = b"<Error><Code>InvalidRequest</Code><Message>Content-MD5 OR x-amz-checksum- HTTP header is "
    text += b"required for Put Object requests with Object Lock parameters</Message></Error>"

    def is_bare(request: Request) -> bool:
        is_content = case.sends(request) or (case.finishes(request) and request.method == "PUT")
        return is_content and "content-md5" not in request.headers

    server.faults = [answers_with(400, text, where=is_bare)]
    case.store.put("a", [data])
    assert server.faults[0].hits == 1
    assert content(case) == data


def test_a_bucket_that_refuses_the_digest_too_is_given_up(case: Case, server: Server) -> None:
    server.faults = [
        answers_with(400, b"<Error><Code>InvalidDigest</Code><Message>Content-MD5</Message></Error>")
    ]
    server.faults[0].where = case.sends
    with pytest.raises(StoreError, match="wants a digest for s3://bucket/a: 400 InvalidDigest"):
        case.store.put("a", [LARGE])
    assert server.faults[0].hits == 2


@DATA
def test_encryption_by_the_store_is_asked_for(case: Case, server: Server, data: bytes) -> None:
    url = f"s3://bucket/?endpoint={url_of(server.address)}&sse=aws:kms&sseKMSKeyID=key"
    open_store(url)[0].put("a", [data])
    asked = [r for r in server.seen if "x-amz-server-side-encryption" in r.headers]
    assert len(asked) == 1
    assert asked[0].headers["x-amz-server-side-encryption"] == "aws:kms"
    assert asked[0].headers["x-amz-server-side-encryption-aws-kms-key-id"] == "key"


def test_an_upload_that_somebody_aborted_is_reported(case: Case, server: Server) -> None:
    body = b"<Error><Code>NoSuchUpload</Code></Error>"
    server.faults = [answers_with(404, body, where=case.sends)]
    with pytest.raises(StoreError, match=r"upload to s3://bucket/a was aborted by someone else\. Try again"):
        case.store.put("a", [LARGE])
    server.faults = []
    assert case.store.stat("a") is None


def test_an_upload_whose_completion_is_not_known_is_looked_up(case: Case, server: Server) -> None:
    """The first attempt completes it and loses its reply; by the second the store has forgotten it."""
    app = server.app
    done: list[Response] = []

    def respond(request: Request) -> Response:
        if not case.finishes(request):
            return app(request)
        done.append(app(request) if not done else Response(status=404, body=NO_UPLOAD))
        return Response(status=500) if len(done) == 1 else done[-1]

    server.app = respond
    case.store.put("a", [LARGE])
    server.app = app
    assert len(done) == 2
    assert content(case) == LARGE


NO_UPLOAD = b"<Error><Code>NoSuchUpload</Code></Error>"


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (403, "InvalidAccessKeyId", "No right to use s3://bucket/.*403 InvalidAccessKeyId"),
        (400, "ExpiredToken", "No right to use"),
        (301, "PermanentRedirect", "redirects requests.*Set region= or correct endpoint="),
        (400, "AuthorizationHeaderMalformed", "is in another region"),
        (400, "QuotaExceeded", "No space is left"),
        (507, "XMinioStorageFull", "No space is left"),
        (404, "NoSuchBucket", r"The bucket of s3://bucket/ does not exist\. Create it"),
        (400, "InvalidRequest", "refused the request for s3://bucket/: 400 InvalidRequest, too odd"),
    ],
)
def test_an_answer_is_a_sentence(case: Case, server: Server, status: int, code: str, message: str) -> None:
    body = f"<Error><Code>{code}</Code><Message>too\nodd.</Message></Error>".encode()
    server.faults = [answers_with(status, body)]
    with pytest.raises(StoreError, match=message):
        list(case.store.list(""))


def test_a_refusal_without_a_reason_names_the_region(case: Case, server: Server) -> None:
    """The answer to HEAD has no text, and not every store sends the region of the bucket in a header."""
    server.faults = [answers_with(400, b"")]
    with pytest.raises(StoreError, match=r"gives no reason \(400, Bad Request\).*set region= in the URL"):
        case.store.stat("a")


def test_a_server_that_is_not_s3_is_reported(case: Case, server: Server) -> None:
    server.app = lambda _: Response(status=200, body=b"")
    with pytest.raises(StoreError, match="has no LastModified, which S3 always sends"):
        case.store.stat("a")


def test_no_credentials_is_a_sentence(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    store = open_store(f"s3://bucket/?endpoint={url_of(server.address)}")[0]
    with pytest.raises(AccessDenied, match=r"No credentials for s3://bucket/a were found\. Set AWS"):
        store.stat("a")
    assert server.seen == []


def test_the_credentials_file_is_used(
    case: Case, server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    mounted = tmp_path_factory.mktemp("secret") / "credentials"
    mounted.write_text("[default]\naws_access_key_id = mounted\naws_secret_access_key = planted\n")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(mounted))
    assert open_store(f"s3://bucket/?endpoint={url_of(server.address)}")[0].stat("a") is None
    assert "Credential=mounted/" in server.seen[0].headers["authorization"]


def test_empty_objects_that_show_folders_are_not_listed(case: Case, server: Server) -> None:
    case.store.put("a/b", [b"x"])
    request = next(r for r in server.seen if case.finishes(r))
    assert server.app(without_writer_id(replace(request, target="/bucket/a/", body=b""))).status == 200
    assert [stored.name for stored in case.store.list("")] == ["a/b"]
    assert [stored.name for stored in case.store.list("a")] == ["a/b"]


def test_a_store_that_ignores_ranges_does_not_continue_with_the_begin(case: Case, server: Server) -> None:
    """Otherwise a good backup would be called damaged after a broken connection."""
    case.store.put("a", [b"begin and end"])
    app = server.app

    def whole(request: Request) -> Response:
        kept = {name: value for name, value in request.headers.items() if name != "range"}
        return app(replace(request, headers=kept))

    assert b"".join(case.store.read("a", 6)) == b"and end"
    server.app = whole
    with pytest.raises(StoreError, match="it sends the beginning of an object when asked for the rest"):
        list(case.store.read("a", 6))


def page(token: str) -> bytes:
    """A page of a list that reports that there are more."""
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>bucket</Name><Prefix></Prefix>
<MaxKeys>1000</MaxKeys><IsTruncated>true</IsTruncated>{token}
<Contents><Key>a</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>"x"</ETag><Size>3</Size></Contents>
</ListBucketResult>""".encode()


@pytest.mark.parametrize(
    ("token", "text"),
    [
        ("<NextMarker>a</NextMarker>", "its answer has no NextContinuationToken"),
        ("<NextContinuationToken>a</NextContinuationToken>", "it sends the same page of a list again"),
    ],
)
def test_a_list_without_a_way_to_its_next_page_is_refused(
    case: Case, server: Server, token: str, text: str
) -> None:
    """As by a store that knows only the first version of the request, or ignores the token."""
    server.faults = [answers_always(page(token)), answers_always(page(token))]
    with pytest.raises(StoreError, match=text):
        list(case.store.list(""))


def answers_always(body: bytes) -> Any:
    return answers_with(200, body, where=lambda request: request.method == "GET")


def test_an_object_without_a_length_is_refused(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = {"LastModified": datetime(2026, 1, 1, tzinfo=UTC)}
    monkeypatch.setattr(type(case.store), "_call", lambda *_, **__: answer)
    with pytest.raises(StoreError, match="its answer has no ContentLength"):
        case.store.stat("a")
