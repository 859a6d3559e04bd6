"""WATCH: which events, from where, in which order, and how a stream ends."""

from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from typing import Any

from unit.kube.contract.harness import Subject, config_map, unique


def position(subject: Subject) -> str:
    version: str = subject.call("GET", subject.url("configmaps")).meta["resourceVersion"]
    return version


def received(stream: Iterator[Any], count: int) -> list[tuple[str, str]]:
    """The next `count` events as (type, name), bookmarks left out."""
    events = (event for event in stream if event["type"] != "BOOKMARK")
    return [(event["type"], event["object"]["metadata"].get("name")) for event in islice(events, count)]


def labelled(subject: Subject, name: str, mark: str) -> None:
    body = config_map(name)
    body["metadata"]["labels"] = {"mark": mark}
    subject.create("configmaps", body)


def test_a_watch_reports_what_happened_after_its_position_in_order(subject: Subject) -> None:
    name, mark = unique("watched"), unique("mark")
    since = position(subject)
    labelled(subject, name, mark)
    subject.patch("configmaps", name, {"data": {"a": "1"}})
    subject.call("DELETE", subject.url("configmaps", name))
    with closing(subject.watch("configmaps", resourceVersion=since, labelSelector=f"mark={mark}")) as stream:
        assert received(stream, 3) == [("ADDED", name), ("MODIFIED", name), ("DELETED", name)]


def test_a_watch_without_a_position_begins_with_what_is_there(subject: Subject) -> None:
    name, mark = unique("there"), unique("mark")
    labelled(subject, name, mark)
    with closing(subject.watch("configmaps", labelSelector=f"mark={mark}")) as stream:
        assert received(stream, 1) == [("ADDED", name)]
        subject.patch("configmaps", name, {"data": {"a": "1"}})
        assert received(stream, 1) == [("MODIFIED", name)]


def test_events_come_while_the_stream_is_open(subject: Subject) -> None:
    name, mark = unique("live"), unique("mark")
    since = position(subject)
    with closing(subject.watch("configmaps", resourceVersion=since, labelSelector=f"mark={mark}")) as stream:
        labelled(subject, name, mark)
        assert received(stream, 1) == [("ADDED", name)]


def test_starting_and_ceasing_to_match_appears_as_creation_and_deletion(subject: Subject) -> None:
    name, mark = unique("match"), unique("mark")
    since = position(subject)
    subject.create("configmaps", config_map(name))
    subject.patch("configmaps", name, {"metadata": {"labels": {"mark": mark}}})
    subject.patch("configmaps", name, {"metadata": {"labels": {"mark": "other"}}})
    with closing(subject.watch("configmaps", resourceVersion=since, labelSelector=f"mark={mark}")) as stream:
        assert received(stream, 2) == [("ADDED", name), ("DELETED", name)]


def test_a_deletion_is_reported_with_a_version_of_its_own(subject: Subject) -> None:
    name, mark = unique("gone"), unique("mark")
    labelled(subject, name, mark)
    made = subject.read("configmaps", name)
    assert made is not None
    since = made["metadata"]["resourceVersion"]
    subject.call("DELETE", subject.url("configmaps", name))
    with closing(subject.watch("configmaps", resourceVersion=since, labelSelector=f"mark={mark}")) as stream:
        event = next(stream)
    assert event["type"] == "DELETED"
    assert event["object"]["metadata"]["uid"] == made["metadata"]["uid"]
    assert int(event["object"]["metadata"]["resourceVersion"]) > int(since)


def test_a_write_that_changes_nothing_is_not_reported(subject: Subject) -> None:
    name, mark = unique("noop"), unique("mark")
    labelled(subject, name, mark)
    since = position(subject)
    subject.patch("configmaps", name, {"metadata": {"labels": {"mark": mark}}})
    subject.patch("configmaps", name, {"data": {"a": "1"}})
    with closing(subject.watch("configmaps", resourceVersion=since, labelSelector=f"mark={mark}")) as stream:
        assert next(stream)["object"]["data"] == {"a": "1"}


def test_a_position_that_has_expired_ends_the_stream_with_an_error_event(subject: Subject) -> None:
    """HTTP 200 and an ERROR event, not HTTP 410: the refusal is inside the stream.

    Of a kind younger than the server: what is as old as a new server has its first positions still in hand.
    """
    if subject.fake is not None:
        subject.fake.compact()
    with closing(subject.watch(subject.things, resourceVersion="1")) as stream:
        events = list(stream)
    assert [event["type"] for event in events] == ["ERROR"]
    assert (events[0]["object"]["code"], events[0]["object"]["reason"]) == (410, "Expired")


def test_the_server_ends_a_watch_after_the_requested_time(subject: Subject) -> None:
    events = list(subject.watch("configmaps", resourceVersion=position(subject), timeoutSeconds="1"))
    assert all(event["type"] in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK") for event in events)
