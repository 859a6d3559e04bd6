"""What the pod of a member has for TLS: the volume with its certificates, and the options of etcd."""

from etcd_operator.api.meta import RawObject
from etcd_operator.api.tls import MemberTls, UserSecret
from etcd_operator.controllers.etcd_cluster.manifests.tls import SEED_FILE, secret_name
from etcd_operator.controllers.shared.manifests.command import PodVolume
from etcd_operator.pki.profiles import PEER
from etcd_operator.pki.secrets import FileNames, file_names
from etcd_operator.versions import parse_version

SEED_FILES = FileNames(SEED_FILE, "seed.key", "seed-ca.crt")
"""Where a seed finds the certificate of the operator, if that is the user's."""

BCRYPT_COST = "4"
"""The least. Passwords are generated, of 32 random bytes: nobody guesses one, however fast."""

PEER_FILES, SERVER_FILES = file_names("peer"), FileNames("server.crt", "server.key", "client-ca.crt")
"""Where members find the certificates, whoever has issued them."""

FOLDER = "/etc/etcd-tls"
VOLUME = "etcd-tls"
SERVER_FLAG = f"--cacert={FOLDER}/client-ca.crt"
"""How a command in the pod of a member verifies what serves clients."""

_MOUNT: RawObject = {"mountPath": FOLDER, "readOnly": True}


def volume(member: str, secured: MemberTls, *, copies: bool = False, is_kept: bool = False) -> PodVolume:
    """The volume with its Secrets: a folder, which the kubelet replaces as a whole when one of them changes.

    Files of a Secret of the user have the names that those of the operator have. copies: for a seed that
    copies the data of a survivor. is_kept: also while there is no Secret of the operator, for a pod that is
    kept when TLS is added.
    """
    optional: RawObject = {} if any(secured.issued) else {"optional": True}
    if not secured.is_supplied:
        source = {"secretName": secret_name(member), "defaultMode": 0o444, **optional}
        return VOLUME, {"secret": source}, _MOUNT
    own = {"name": secret_name(member), **optional}
    used = (
        (secured.peer_secret, PEER_FILES),
        (secured.client_secret, SERVER_FILES),
        (secured.operator_secret if copies else None, SEED_FILES),
    )
    is_used = is_kept or any(secured.issued)
    sources = [
        *([{"secret": own}] if is_used else []),
        *(_supplied(secret, files) for secret, files in used if secret is not None),
    ]
    return VOLUME, {"projected": {"sources": sources, "defaultMode": 0o444}}, _MOUNT


def _supplied(secret: UserSecret, files: FileNames) -> RawObject:
    """The source of a projected volume: the files of a Secret of the user, under these names."""
    pairs = zip(file_names(secret.keys).all, files.all, strict=True)
    return {"secret": {"name": secret.name, "items": [{"key": key, "path": path} for key, path in pairs]}}


def mount() -> PodVolume:
    """The same in one more container of that pod."""
    return VOLUME, {}, _MOUNT


def client_flags(secured: MemberTls) -> list[str]:
    """How etcdctl in the pod of a seed reaches another member."""
    if not secured.is_dialed:
        return []
    # One that the operator issues is there, and a member may still ask for one.
    has_own = secured.client_secret is None or secured.client_cert_auth
    own = [f"--cert={FOLDER}/seed.crt", f"--key={FOLDER}/seed.key"] if has_own else []
    return [SERVER_FLAG, *own]


CERT_AUTH, CIPHER_SUITES = "client-cert-auth", "cipher-suites"

CLIENT_OPTIONS = (
    "cert-file",
    "key-file",
    "trusted-ca-file",
    CERT_AUTH,
    CIPHER_SUITES,
    "bcrypt-cost",
    "enable-grpc-gateway",
)
"""The options of etcd for clients that depend on TLS only."""


PEER_OPTIONS = (
    "peer-cert-file",
    "peer-key-file",
    "peer-client-cert-file",
    "peer-client-key-file",
    "peer-trusted-ca-file",
    "peer-client-cert-auth",
    "peer-cert-allowed-cn",
)
"""The options of etcd for peers that depend on TLS only."""


def options(tls: MemberTls) -> dict[str, str]:
    """The options of etcd for it, by flag name."""
    return {**client_options(tls), **peer_options(tls)}


def client_options(tls: MemberTls) -> dict[str, str]:
    """Those for clients."""
    if not tls.client:
        return {}
    found = _files("", "server")
    if tls.client_cert_auth:
        found |= {"trusted-ca-file": f"{FOLDER}/client-ca.crt", CERT_AUTH: "true"}
        # Users may be required. Clients ask for tokens again all at once when a member restarts.
        found["bcrypt-cost"] = BCRYPT_COST
    # The gateway would dial etcd itself, with the leaf of the server.
    found["enable-grpc-gateway"] = "false"
    if tls.min_version is not None:
        found["tls-min-version"] = tls.min_version
    if tls.cipher_suites:
        found[CIPHER_SUITES] = ",".join(tls.cipher_suites)
    return found


def peer_options(tls: MemberTls) -> dict[str, str]:
    """Those for peers: where members listen without TLS, etcd only dials with them."""
    if not tls.peer:
        return {}
    found = _files("peer-", "peer")
    is_issued = tls.peer_secret is None  # with a leaf of its own for dialing, and a common name
    if is_issued:
        found |= {
            "peer-client-cert-file": f"{FOLDER}/peer-dial.crt",
            "peer-client-key-file": f"{FOLDER}/peer-dial.key",
        }
    found |= {"peer-trusted-ca-file": f"{FOLDER}/peer-ca.crt", "peer-client-cert-auth": "true"}
    if is_issued:
        found["peer-cert-allowed-cn"] = PEER
    return found


NAME_OPTIONS = ("experimental-peer-skip-client-san-verification", "peer-skip-client-san-verification")
"""Until etcd 3.5, and since 3.6; one of the two is set, see `name_options`."""


def name_options(secured: MemberTls, version: str) -> dict[str, str]:
    """The options of etcd for one certificate of all members, by flag name; an empty value sets nothing.

    The listener for peers would compare the names in the certificate with the address of the member that
    dials, by reverse DNS, which knows neither wildcards nor the pods behind a Service with an address.
    """
    if secured.peer_secret is None:
        return {}
    is_early = parse_version(version).minor < _RENAMED_MINOR
    return dict(zip(NAME_OPTIONS, ("true", "") if is_early else ("", "true"), strict=True))


_RENAMED_MINOR = 6


def _files(prefix: str, file: str) -> dict[str, str]:
    return {f"{prefix}cert-file": f"{FOLDER}/{file}.crt", f"{prefix}key-file": f"{FOLDER}/{file}.key"}
