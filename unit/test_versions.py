"""Versions of etcd: read in one place."""

import pytest

from etcd_operator.errors import InvalidSpec
from etcd_operator.versions import minors_that_start_on, parse_version, starts_on
from unit.controllers.etcd_cluster.decide.builders import persistent


@pytest.mark.parametrize(
    ("text", "read"),
    [("3.6.16", "3.6.16"), ("v3.5.35", "3.5.35"), ("3.7.0-rc.1", "3.7.0-rc.1"), ("3.4.0", "3.4.0")],
)
def test_a_version_is_read_with_or_without_its_v(text: str, read: str) -> None:
    assert str(parse_version(text)) == read


@pytest.mark.parametrize(
    "text", ["", "v", "latest", "3", "3.6", "3.6.x", "vv3.6.16", " 3.6.16", "03.6.16", "3.6.16.1"]
)
def test_what_is_no_version_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidSpec, match=r"is not a version of etcd: write three numbers, such as 3\.6\.16"):
        parse_version(text)


@pytest.mark.parametrize("text", ["2.3.8", "3.0.17", "3.3.27", "3.8.0", "4.0.0", "4.5.0", "0.0.1"])
def test_a_version_that_is_not_supported_is_refused_with_the_range(text: str) -> None:
    with pytest.raises(InvalidSpec, match=r"is not supported: choose one from 3\.4 to 3\.7"):
        parse_version(text)


@pytest.mark.parametrize(
    ("version", "backup", "starts"),
    [
        ("3.5.35", "3.4.39", True),
        ("3.5.10", "3.5.35", True),
        ("3.6.0", "3.5.35", True),
        ("3.5.35", "3.6.0", False),
        ("3.6.16", "3.4.39", False),
        ("3.10.0", "3.9.1", True),
    ],
)
def test_etcd_starts_on_a_backup_of_its_own_minor_version_or_the_one_before(
    version: str, backup: str, *, starts: bool
) -> None:
    assert starts_on(version, backup) is starts


def test_a_message_names_the_minor_versions_that_start_on_a_backup() -> None:
    assert minors_that_start_on("3.9.1") == "3.9 or 3.10"


def test_these_are_also_named_where_a_build_of_etcd_has_a_version_of_four_parts() -> None:
    assert minors_that_start_on("3.6.16.1") == "3.6 or 3.7"


def test_an_image_is_made_from_the_repository_and_the_version() -> None:
    cluster = persistent(repository="registry:5000/etcd")

    assert cluster.at("") == cluster
    other = cluster.at("3.5.35")
    assert (other.version, other.image) == ("3.5.35", "registry:5000/etcd:v3.5.35")
