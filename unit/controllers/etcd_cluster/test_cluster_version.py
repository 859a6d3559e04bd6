"""etcd's own cluster version in status: read by the prober, only until it is what the members come to."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from unittest.mock import patch

from etcd_operator.controllers.etcd_cluster.observe import prober
from etcd_operator.etcd import metrics_page
from etcd_operator.etcd.values import UNREAD, MetricsPage
from unit.passes.bench import Bench, bootstrapped
from unit.passes.bodies import COREOS, IMPROBABLE, ephemeral, persistent
from unit.passes.harness import RESYNC


@contextmanager
def pages_read() -> Iterator[list[str]]:
    """The endpoint of every page that is read."""
    seen: list[str] = []
    plainly = metrics_page.read

    def read(endpoints: Collection[str]) -> dict[str, MetricsPage]:
        seen.extend(endpoints)
        return plainly(endpoints)

    with patch.object(prober, "read", read):
        yield seen


def versions(made: Bench) -> tuple[str, str]:
    status = made.status(IMPROBABLE)
    return status["clusterVersion"], status["currentVersion"]


def test_it_is_read_of_one_member_when_a_cluster_begins_and_then_no_more() -> None:
    with pages_read() as seen, bootstrapped(*persistent()) as made:
        made.settle()
        assert versions(made) == ("3.6.0", "3.6.16")
        assert seen
        seen.clear()
        made.rest(10)
        assert seen == []


def test_a_page_that_is_never_readable_is_not_requested_again_and_again() -> None:
    """As behind a NetworkPolicy without that port: each such request costs a thread a second."""
    seen: list[str] = []

    def unreadable(endpoints: Collection[str]) -> dict[str, MetricsPage]:
        seen.extend(endpoints)
        return dict.fromkeys(endpoints, UNREAD)

    with patch.object(prober, "read", unreadable), bootstrapped(*persistent()) as made:
        made.settle()
        seen.clear()
        made.wait(6 * RESYNC)
        assert 1 <= len(seen) <= 8


def test_it_follows_a_minor_upgrade_when_etcd_has_followed() -> None:
    with bootstrapped(*persistent(version="3.5.35")) as made:
        assert versions(made) == ("3.5.0", "3.5.35")
        made.etcd.etcd.holds_version = True
        made.edit(IMPROBABLE, "c", {"spec": {"version": "3.6.16"}})
        made.run_until(lambda: versions(made) == ("3.5.0", "3.6.16"))
        with made.etcd.etcd.changed:
            made.etcd.etcd.holds_version = False
            made.etcd.etcd._settle()
        began = made.clock.monotonic()
        made.run_until(lambda: versions(made) == ("3.6.0", "3.6.16"))
        assert made.clock.monotonic() - began < 10  # and not at the next pass over a settled cluster


def test_a_patch_upgrade_reads_nothing() -> None:
    with bootstrapped(*persistent()) as made:
        made.settle()
        with pages_read() as seen:
            made.edit(IMPROBABLE, "c", {"spec": {"version": "3.6.17"}})
            made.settle()
        assert versions(made) == ("3.6.0", "3.6.17")
        assert seen == []


def test_what_was_known_is_kept_while_nobody_reports() -> None:
    with bootstrapped(*persistent(size=1)) as made:
        made.settle()
        made.etcd.etcd.freeze("c-0")
        made.run_until(lambda: made.reason(IMPROBABLE) == "QuorumLost")
        assert versions(made) == ("3.6.0", "3.6.16")


def test_the_group_that_has_no_such_field_reads_nothing() -> None:
    with pages_read() as seen, bootstrapped(*ephemeral()) as made:
        made.settle()
        assert "clusterVersion" not in made.status(COREOS)
        assert seen == []
