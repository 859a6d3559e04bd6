"""The names and addresses that a certificate of a server is for."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

from etcd_operator.pki.errors import BadCertificate

Address = IPv4Address | IPv6Address

MOST_NAMES = 200
"""In one certificate."""

_LABEL = "[a-z0-9_]([-a-z0-9_]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(\*\.)?{_LABEL}(\.{_LABEL})*")

LOCALHOST = "localhost"
_LOOPBACK = (ip_address("127.0.0.1"), ip_address("::1"))


@dataclass(frozen=True, slots=True)
class Names:
    """Subject alternative names, in the order in which they are written, each once."""

    dns: tuple[str, ...] = ()
    addresses: tuple[Address, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """All of them, for people and for comparisons."""
        return (*self.dns, *map(str, self.addresses))


def forms(host: str, namespace: str, zone: str) -> tuple[str, ...]:
    """The names by which pods reach a Service, or a pod behind one (`POD.SERVICE`): short to fully qualified.

    zone: the domain of the cluster, like cluster.local.
    """
    return host, f"{host}.{namespace}", f"{host}.{namespace}.svc", f"{host}.{namespace}.svc.{zone}"


def names_of(
    hosts: Iterable[str],
    *,
    namespace: str,
    zone: str,
    extra_dns: Iterable[str] = (),
    extra_ips: Iterable[str] = (),
) -> Names:
    """The names of a member: those of each host (its own, and the Services that lead to it), and localhost.

    Raises `BadCertificate` if one of them is none.
    """
    dns = [form for host in hosts for form in forms(host, namespace, zone)]
    found = Names(
        dns=tuple(dict.fromkeys(map(dns_name, [*dns, LOCALHOST, *extra_dns]))),
        addresses=tuple(dict.fromkeys([*_LOOPBACK, *map(address, extra_ips)])),
    )
    if len(found.texts) > MOST_NAMES:
        raise BadCertificate(
            f"{len(found.texts)} names for one certificate: at most {MOST_NAMES} are possible"
        )
    return found


def dns_name(text: str) -> str:
    """A DNS name in lower case, as in certificates; its first label may be `*`. Raises `BadCertificate`."""
    name = text.lower()
    if len(name) > 253 or not _NAME.fullmatch(name):
        raise BadCertificate(
            f"{_shown(text)} is not a DNS name: write letters, digits, hyphens and dots, perhaps after *."
        )
    if _is_address(name):
        raise BadCertificate(f"{_shown(text)} is an IP address, not a DNS name: add it to the addresses")
    return name


def address(text: str) -> Address:
    """An IP address. Raises `BadCertificate`."""
    try:
        found = ip_address(text)
    except ValueError as error:
        raise BadCertificate(f"{_shown(text)} is not an IP address") from error
    if isinstance(found, IPv6Address) and found.scope_id is not None:
        raise BadCertificate(f"{_shown(text)} has a zone, which certificates do not have: write it without")
    return found


def covers(names: Collection[str], wanted: str) -> bool:
    """Whether a client that dials `wanted`, a DNS name, accepts one of these DNS names.

    A wildcard stands for exactly one label, as in Go and OpenSSL; a wanted one stands for all such names.
    """
    rest = wanted.lower().partition(".")[2]
    return any(name.lower() in (wanted.lower(), f"*.{rest}" if rest else wanted.lower()) for name in names)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _shown(text: str) -> str:
    """A user's text, bounded, on one line."""
    return ascii(text if len(text) <= 80 else f"{text[:77]}...")
