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

    endpoints, keys  flags that name a cluster, and encryption keys
    members          flags that name the members of a new cluster
    etcd_programs    flags that name the folder of etcd and etcdutl
    places           URLs of backups, and names of new ones
    outcome          exit codes, output for people and for programs
    progress         progress for people
    progress_port    progress for the operator, of a command that runs in a pod
    interrupts       signals as exceptions, so that everything is cleaned up

All of them are imported at each start, so they import what is large only when they run.
"""
