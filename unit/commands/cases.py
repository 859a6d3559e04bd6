"""What can be wrong on the command line of backups, and the line that reports it; see docs/bad-input.md."""

from dataclasses import dataclass

BACKUP = "backup --endpoints 127.0.0.1:2379"
TO = "--to one.db"
RESTORE = "restore one.db --data-dir new"


@dataclass(frozen=True, slots=True)
class Case:
    """Arguments (`DIR` is an existing folder, `FULL` one with a file), the message, and the exit code."""

    words: str
    sees: str
    code: int = 2


NO_FOLDER = "The folder missing does not exist. Create it, or correct the path."

CASES = (
    Case(f"backup --endpoints nowhere {TO}", "--endpoints: 'nowhere' is not HOST:PORT, like 127.0.0.1:2379"),
    Case(f"backup --endpoints a:1,,b:2 {TO}", "--endpoints: '' is not HOST:PORT, like 127.0.0.1:2379"),
    Case(
        f"backup --endpoints me:pw@a:1 {TO}",
        "--endpoints takes no credentials: pass --user and --password-file",
    ),
    Case(
        f"backup --endpoints https://a:1 {TO}",
        "--endpoints: https://a:1 uses TLS: pass --cacert with etcd's CA",
    ),
    Case(
        f"backup --endpoints http://a:1 --cacert ca.crt {TO}",
        "--endpoints: http://a:1 uses no TLS: write https:// or remove --cacert",
    ),
    Case(
        f"{BACKUP} --cert etcd.crt {TO}", "--cert, --key and --tls-server-name need --cacert with etcd's CA"
    ),
    Case(f"{BACKUP} --cacert ca.crt --cert etcd.crt {TO}", "--cert and --key belong together: pass both"),
    Case(
        f"{BACKUP} --cacert missing.crt {TO}", "--cacert: cannot read missing.crt: No such file or directory"
    ),
    Case(f"{BACKUP} --cacert /dev/null {TO}", "--cacert: /dev/null has no certificate in PEM format"),
    Case(
        f"{BACKUP} --tls-dir DIR --cert a.crt {TO}",
        "--tls-dir replaces --cacert, --cert and --key: pass it alone",
    ),
    Case(f"{BACKUP} --tls-dir missing {TO}", "cannot read missing/ca.crt: No such file or directory", 1),
    Case(
        f"{BACKUP} --user-dir DIR --user root {TO}",
        "--user-dir replaces --user and --password-file: pass it alone",
    ),
    Case(f"{BACKUP} --user-dir missing {TO}", "cannot read missing/username: No such file or directory", 1),
    Case(f"{BACKUP} --user root {TO}", "--user and --password-file belong together: pass both"),
    Case(f"{BACKUP} --password-file pw {TO}", "--user and --password-file belong together: pass both"),
    Case(
        f"{BACKUP} --user root:pw --password-file pw {TO}",
        "--user takes a name only: put the password in a file, and pass --password-file",
    ),
    Case(
        f"{BACKUP} {TO} --encryption-keys missing",
        "cannot read the key missing: No such file or directory",
        1,
    ),
    Case(
        f"{BACKUP} --to ftp://host/one.db",
        "No store has URLs that start with ftp://. Use file, s3, gs or azblob.",
        1,
    ),
    Case(f"{BACKUP} --to=", "The path of the store is empty or contains a NUL. Name a folder or a file.", 1),
    Case("list missing/", NO_FOLDER, 1),
    Case("list missing", NO_FOLDER, 1),
    Case("list FULL/file", "FULL/file is a file: name its folder"),
    Case("verify DIR", "DIR is a folder: name one backup in it, see `etcd-operator list`"),
    Case("fetch DIR/ snapshot.db", "DIR/ is a folder: name one backup in it, see `etcd-operator list`"),
    Case("verify missing.db", "there is no backup named missing.db: see `etcd-operator list`", 1),
    Case(
        "verify one.db --etcd-bin /opt/etcd",
        "--etcd-bin and --scratch-dir are for --restore: add it, or remove them",
    ),
    Case("prune DIR", "pass --max-count, --max-age or both"),
    Case("prune DIR --max-count 0", "--max-count: the newest backup is never removed: pass 1 or more"),
    Case(
        "prune DIR --max-age 30",
        "--max-age: '30' is not a duration: write numbers with the units w, d, h, m and s, like 30d or 1d12h",
    ),
    Case("prune missing/ --max-count 1", NO_FOLDER, 1),
    Case(f"{BACKUP} {TO} --series a:b", "--series: use at most 256 letters, digits, '.', '_', '/' and '-'"),
    Case("restore one.db", "pass --data-dir DIR, or --check to change nothing"),
    Case(f"{RESTORE} --check", "pass --data-dir DIR, or --check to change nothing"),
    Case(f"{RESTORE} --sha256 abc", "--sha256 is not a SHA-256: 64 hexadecimal digits in lower case"),
    Case(
        f"{RESTORE} --initial-cluster m0",
        "--initial-cluster: 'm0' is not NAME=URL, like m0=http://10.0.0.1:2380",
    ),
    Case(
        f"{RESTORE} --initial-cluster m0=10.0.0.1:2380",
        "--initial-cluster: '10.0.0.1:2380' is not a peer URL, like http://10.0.0.1:2380",
    ),
    Case(
        f"{RESTORE} --initial-advertise-peer-urls http://[:1",
        "--initial-advertise-peer-urls: 'http://[:1' is not a peer URL, like http://10.0.0.1:2380",
    ),
    Case(
        f"{RESTORE} --initial-cluster m0=http://a:2380",
        "--initial-cluster does not have the member default: add it, or correct --name",
    ),
    Case(
        f"{RESTORE} --name m0 --initial-cluster m0=http://a:2380 --initial-advertise-peer-urls http://b:2380",
        "--initial-advertise-peer-urls are not those of m0 in --initial-cluster: correct one of them",
    ),
    Case(
        f"{RESTORE} --name m0 --initial-cluster m0=http://a:2380,m1=http://b:2380",
        "--initial-cluster has several members: pass the same new --initial-cluster-token for each",
    ),
    Case(f"{RESTORE} --bump-revision 0", "--bump-revision has to be 1 or more: clients would miss changes"),
    Case(
        "restore one.db --data-dir FULL", "FULL exists already, and is not empty: pass another --data-dir", 1
    ),
)


def rows() -> list[str]:
    """The table for docs/bad-input.md."""
    return [f"| `{case.words}` | {case.sees} |" for case in CASES]
