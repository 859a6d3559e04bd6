"""What the operator and the programs in its own pods have to agree on: ports and environment variables.

The programs are other commands of this package (`backup-tool`, `read-survivor`, `seed`), and etcd. Each of
these values is written down only here. Pods run on while the operator is updated, so a program may be older
than the operator: after a change of a value, pods still use the former one.

All commands import this module at each start, so it imports nothing.
"""

METRICS_PORT = 2381
"""Metrics and health of etcd over plain HTTP, from the start of its process, also without a quorum."""

READER_PORT = 2382
"""The HTTP API of `read-survivor`."""

READER_TOKEN_VARIABLE = "SURVIVOR_TOKEN"  # noqa: S105 -- the name of a variable
"""The token that clients of `read-survivor` send."""

AWS_FOLDER_VARIABLE = "ETCD_OPERATOR_AWS_FOLDER"
"""The folder with `credentials` and `config`, in the format of `~/.aws`; pods read no other files of AWS."""

BACKUP_TOOL_PORT = 19999
"""The HTTP API of `backup-tool`."""

BACKUP_TOOL_PROBE_PORT = 19997
"""`/healthz` of `backup-tool`, for the kubelet."""

SEED_COMMAND_VARIABLE = "SEED_COMMAND"
SEED_COMMAND_SKIP = "version"
"""With this value of the variable, `seed` does nothing. etcdctl and etcdutl get it as their first word, and
then only print their version."""

CA_FILE, CERTIFICATE_FILE, KEY_FILE = "ca.crt", "tls.crt", "tls.key"
ETCD_FOLDER = "/var/run/secrets/etcd-backup/etcd"
"""In a folder for `--tls-dir`: the CAs of etcd's servers; a client's certificate and its key, or neither."""

SERVER_CERTIFICATE_FILE, SERVER_KEY_FILE = "server.crt", "server.key"
"""In the same folder, for a program that serves: its certificate with its key."""

USER_FILE, PASSWORD_FILE = "username", "password"
ETCD_USER_FOLDER = "/var/run/secrets/etcd-backup/etcd-user"
"""In a folder for `--user-dir`: a user of etcd."""
