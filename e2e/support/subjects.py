"""What `hack/test` shows on a real Kubernetes without --all: the subjects of the tests that it runs there.

Each capability has one test, with the marker `capability`. Each section of the documents of the earlier
operators that shows commands and their results has tests with the marker `walkthrough`.
unit/hack/test_quick_tests.py checks both.
"""

from collections.abc import Mapping, Sequence

CAPABILITIES = (
    "create and delete: coreos.com",
    "create, delete and resume: etcd.improbable.io",
    "resize",
    "upgrade",
    "replace a lost member",
    "recover from a survivor",
    "recover on request",
    "recover automatically",
    "killed operator",
    "EtcdBackup",
    "EtcdBackupSchedule",
    "EtcdRestore",
    "restore in place",
    "spec.backup",
    "restore when all members are lost",
    "adopt",
    "take over from an earlier operator",
    "disruption budget",
    "pod security",
    "rights of the operator",
    "TLS",
)

WALKTHROUGHS: Mapping[str, Sequence[str]] = {
    "CoreOS README": (
        "Create and destroy an etcd cluster",
        "Resize an etcd cluster",
        "Member recovery",
        "etcd operator recovery",
        "Disaster recovery",
        "Upgrade an etcd cluster",
    ),
    "CoreOS README, oldest": (
        "Create an etcd cluster",
        "Destroy an existing etcd cluster",
        "Try cluster recovery",
        "Try controller recovery",
    ),
    "CoreOS article": ("Backup", "Create a new etcd cluster with the Operator"),
    "Improbable README": ("Deploying an etcd cluster", "Testing Connectivity inside Kubernetes", "Cleanup"),
    "Improbable guide": (
        "Understanding Cluster Status",
        "Delete a Cluster",
        "Scale up a cluster",
        "Scale down a cluster",
        "The EtcdBackup resource",
        "The EtcdBackupSchedule resource",
        "Upgrade a Cluster",
        "Restore from a Backup",
    ),
}
"""The sections of each document. `hack/test` itself does what is left out, such as to deploy the operator."""
