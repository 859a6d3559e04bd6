"""The commands of `etcd-operator`, one module each: `add_arguments(parser)` and `run(options)`.

    run          the operator
    backup       store a backup of a cluster
    listing      list backups (`etcd-operator list`)
    fetch        copy a backup to a file
    verify       read a backup back, and restore it on trial
    restore      restore a backup or a snapshot to a data directory
    prune        remove old backups
    backup_tool  back up a cluster regularly (`etcd-operator backup-tool`)
    seed         fetch the data of the first member of a recovered cluster
    survivor     serve the data of a member without a quorum (`etcd-operator read-survivor`)

What they share:

    flags        arguments: where backups are stored, encryption keys, the folder of etcd and etcdutl
    outcome      exit codes, output for people and for programs, signals as exceptions
    progress     progress for people, and for the operator

All of them are imported at each start, so they import what is large only when they run.
"""
