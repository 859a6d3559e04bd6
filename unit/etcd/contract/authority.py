"""The CA of a cluster under test: what its members serve with, and certificates of users."""

from pathlib import Path

import grpc
import trustme

from etcd_operator.etcd.channel import Channels, TlsCredentials

_SERVER = "member.test"


class Authority:
    """Makes certificates in `folder`, and connections with them."""

    def __init__(self, folder: Path) -> None:
        self._ca = trustme.CA()
        self._server = self._ca.issue_cert(_SERVER)
        self._made: dict[str, Channels] = {}
        names = {"ca.pem": self._ca.cert_pem, "server.pem": self._server.cert_chain_pems[0]}
        for name, blob in (*names.items(), ("server.key", self._server.private_key_pem)):
            blob.write_to_path(folder / name)
        self.flags = (
            "--client-cert-auth",
            f"--trusted-ca-file={folder / 'ca.pem'}",
            f"--cert-file={folder / 'server.pem'}",
            f"--key-file={folder / 'server.key'}",
            "--bcrypt-cost=4",
        )

    @property
    def server_credentials(self) -> grpc.ServerCredentials:
        """The same as `flags`, for the fake."""
        pair = self._server.private_key_pem.bytes(), self._server.cert_chain_pems[0].bytes()
        return grpc.ssl_server_credentials([pair], self._ca.cert_pem.bytes(), require_client_auth=True)

    def of(self, user: str) -> Channels:
        """Connections with a certificate for this CN; an empty one is a certificate without CN."""
        if user not in self._made:
            leaf = self._ca.issue_cert("client.test", common_name=user or None)
            credentials = TlsCredentials(
                ca=self._ca.cert_pem.bytes(),
                certificate=leaf.cert_chain_pems[0].bytes(),
                key=leaf.private_key_pem.bytes(),
                server_name=_SERVER,
            )
            self._made[user] = Channels(credentials)
        return self._made[user]

    def close(self) -> None:
        for channels in self._made.values():
            channels.close()
