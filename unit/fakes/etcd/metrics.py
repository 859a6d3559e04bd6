"""The metrics page of one fake member: served from the first moment, before any call is answered."""

import socket
import threading
from contextlib import suppress

from unit.fakes.etcd.cluster import FakeEtcdCluster
from unit.fakes.etcd.member import FakeMember


class MetricsServer:
    """Serves the page at `host`:`port` until it is closed."""

    def __init__(self, host: str, port: int, etcd: FakeEtcdCluster, member: FakeMember) -> None:
        self._etcd, self._member = etcd, member
        self._socket = socket.create_server((host, port))
        self._thread = threading.Thread(target=self._serve, name="metrics")
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread, which no poll has to
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._socket.accept()
                with client, suppress(OSError):
                    client.settimeout(1.0)
                    client.recv(4096)
                    client.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + self._body())

    def _body(self) -> bytes:
        etcd = self._etcd
        lines = [
            f"etcd_server_leader_changes_seen_total {self._member.has_led:d}",
            f"etcd_debugging_snap_save_total_duration_seconds_count {etcd.snapshots(self._member)}",
            f"etcd_debugging_auth_revision {etcd.auth.revision}",
        ]
        if etcd.cluster_version:
            lines.append(f'etcd_cluster_version{{cluster_version="{etcd.cluster_version}"}} 1')
        return "".join(f"{line}\n" for line in lines).encode()
