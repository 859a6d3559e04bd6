"""What the fake can be made to do that no real server does on demand: faults, stale views, restarts."""

import threading
from collections.abc import Iterator

import pytest
import urllib3

from unit.fakes.apiserver import Answer, ApiServer, Cut, OnWrite, Request, Stall
from unit.fakes.apiserver.kinds import CONFIG_MAPS
from unit.kube.contract.harness import Subject, config_map
from unit.waiting import eventually


@pytest.fixture
def subject() -> Iterator[Subject]:
    with ApiServer() as api, urllib3.PoolManager(maxsize=4) as pool:
        subject = Subject(pool, api.url, {}, api)
        subject.namespace = "default"
        yield subject


@pytest.fixture
def api(subject: Subject) -> ApiServer:
    assert subject.fake is not None
    return subject.fake


def post(subject: Subject, name: str) -> int:
    return subject.call("POST", subject.url("configmaps"), config_map(name)).code


def listed(subject: Subject) -> list[str]:
    found = subject.call("GET", subject.url("configmaps")).body["items"]
    return [item["metadata"]["name"] for item in found]


def test_a_write_can_be_refused_without_being_applied(subject: Subject, api: ApiServer) -> None:
    api.before = OnWrite(2, Answer(code=429, reason="TooManyRequests", retry_after=3))
    assert [post(subject, name) for name in "abc"] == [201, 429, 201]
    assert listed(subject) == ["a", "c"]
    assert [(x.code, x.applied) for x in api.writes] == [(201, True), (429, False), (201, True)]


def test_a_reply_can_be_lost_after_the_write_was_applied(subject: Subject, api: ApiServer) -> None:
    api.after = OnWrite(1, Cut())
    with pytest.raises(urllib3.exceptions.ProtocolError):
        post(subject, "a")
    assert listed(subject) == ["a"]
    assert [(x.code, x.applied) for x in api.writes] == [(0, True)]


def test_a_connection_can_be_cut_before_anything_is_applied(subject: Subject, api: ApiServer) -> None:
    api.before = OnWrite(1, Cut())
    with pytest.raises(urllib3.exceptions.ProtocolError):
        post(subject, "a")
    assert listed(subject) == []


def test_a_write_can_be_applied_and_answered_with_an_error(subject: Subject, api: ApiServer) -> None:
    api.after = OnWrite(1, Answer(code=504, reason="Timeout"), plural="configmaps")
    assert post(subject, "a") == 504
    assert listed(subject) == ["a"]


def test_a_stalled_request_does_not_keep_the_server_from_stopping(subject: Subject, api: ApiServer) -> None:
    stall = Stall()
    api.before = lambda _: stall
    with pytest.raises(urllib3.exceptions.ReadTimeoutError):
        subject._pool.request("GET", api.url + "/version", timeout=1.0, retries=False)
    api.stop()
    assert api.log[-1].code == 0


def test_a_frozen_view_shows_the_past_while_writes_go_on(subject: Subject, api: ApiServer) -> None:
    post(subject, "a")
    api.freeze_views()
    stream = subject.watch("configmaps", resourceVersion=str(api.stale_revision))
    post(subject, "b")
    assert listed(subject) == ["a"]
    assert subject.read("configmaps", "b") is not None
    api.thaw_views()
    assert listed(subject) == ["a", "b"]
    assert next(stream)["object"]["metadata"]["name"] == "b"
    stream.close()


def test_a_stalled_watch_can_collapse_a_recreation_into_an_update(subject: Subject, api: ApiServer) -> None:
    post(subject, "a")
    stream = subject.watch("configmaps", resourceVersion=str(api.objects.store.revision))
    eventually(lambda: api.watches)
    api.watches[0].stall()
    before = api.objects.get(CONFIG_MAPS, "default", "a")["metadata"]["uid"]
    subject.call("DELETE", subject.url("configmaps", "a"))
    post(subject, "a")
    api.watches[0].resume(coalesce=True)
    event = next(stream)
    assert event["type"] == "MODIFIED"
    assert event["object"]["metadata"]["uid"] != before
    stream.close()


def test_a_watch_can_lose_events(subject: Subject, api: ApiServer) -> None:
    stream = subject.watch("configmaps", resourceVersion=str(api.objects.store.revision))
    eventually(lambda: api.watches)
    api.watches[0].stall()
    post(subject, "lost")
    api.watches[0].skip()
    api.watches[0].resume()
    post(subject, "seen")
    assert next(stream)["object"]["metadata"]["name"] == "seen"
    stream.close()


def test_a_dropped_watch_ends_in_good_order(subject: Subject, api: ApiServer) -> None:
    stream = subject.watch("configmaps", resourceVersion=str(api.objects.store.revision))
    eventually(lambda: api.watches)
    api.watches[0].drop()
    assert list(stream) == []


def test_all_objects_are_read_between_two_writes(api: ApiServer) -> None:
    store, found = api.objects.store, list[str]()
    reader = threading.Thread(target=lambda: found.extend(place.name for place, _ in store.everything()))
    with store.changed:
        reader.start()
        reader.join(0.1)
        assert reader.is_alive(), "it reads while a write is under way"
        store.put(CONFIG_MAPS, config_map("a"))
    reader.join(60.0)
    assert "a" in found


def test_a_crash_of_the_fake_itself_fails_the_test() -> None:
    api = ApiServer()
    api.start()

    def broken(_request: Request) -> None:
        raise ZeroDivisionError

    api.before = broken
    with urllib3.PoolManager() as pool, pytest.raises(urllib3.exceptions.ProtocolError):
        pool.request("GET", api.url, timeout=30.0, retries=False)
    with pytest.raises(AssertionError, match="crashed"):
        api.stop()
