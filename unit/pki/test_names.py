"""The names of members, and which names cover which hosts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etcd_operator.pki.errors import BadCertificate
from etcd_operator.pki.names import MOST_NAMES, address, covers, dns_name, names_of


def test_a_member_has_all_forms_of_its_hosts_and_the_loopback_ones() -> None:
    found = names_of(
        ["my-0", "my-0.my", "my"],
        namespace="ns",
        zone="example.org",
        extra_dns=["*.Example.com", "localhost"],
        extra_ips=["10.0.0.7", "::1", "FD00::0:1"],
    )
    assert found.dns == (
        "my-0",
        "my-0.ns",
        "my-0.ns.svc",
        "my-0.ns.svc.example.org",
        "my-0.my",
        "my-0.my.ns",
        "my-0.my.ns.svc",
        "my-0.my.ns.svc.example.org",
        "my",
        "my.ns",
        "my.ns.svc",
        "my.ns.svc.example.org",
        "localhost",
        "*.example.com",
    )
    assert tuple(map(str, found.addresses)) == ("127.0.0.1", "::1", "10.0.0.7", "fd00::1")


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "a..b",
        "a.",
        "-a",
        "a-",
        "a b",
        "ä.example",
        "*",
        "a.*",
        "*.*.a",
        "10.0.0.1",
        "x" * 64,
        "a." * 127 + "a",
    ],
)
def test_what_is_no_dns_name_is_refused(text: str) -> None:
    with pytest.raises(BadCertificate, match="not a DNS name"):
        dns_name(text)


@pytest.mark.parametrize("text", ["", "10.0.0", "10.0.0.0/8", "a", "fe80::1%eth0", "1" * 500])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(BadCertificate):
        address(text)


@given(st.text(max_size=300))
def test_any_text_is_a_name_or_refused_in_one_short_line(text: str) -> None:
    for parse in (dns_name, address):
        try:
            parse(text)
        except BadCertificate as error:
            message = str(error)
            assert message.isprintable()
            assert len(message) < 900


def test_too_many_names_are_refused() -> None:
    many = [f"name-{number}.example" for number in range(MOST_NAMES)]
    with pytest.raises(BadCertificate, match="at most"):
        names_of(["my"], namespace="ns", zone="z", extra_dns=many)


@pytest.mark.parametrize(
    ("names", "wanted", "is_covered"),
    [
        (["a.b"], "a.b", True),
        (["A.B"], "a.b", True),
        (["*.b"], "a.b", True),
        (["*.b"], "*.b", True),
        (["*.b"], "a.c.b", False),
        (["*.b"], "b", False),
        (["*"], "a", False),
        (["a.b"], "*.b", False),
        ([], "a", False),
    ],
)
def test_covers(names: list[str], wanted: str, is_covered: bool) -> None:
    assert covers(names, wanted) is is_covered
