"""The commands of `etcd-operator`, one module each: `add_arguments(parser)` and `run(options)`.

    run      the operator
    backup   store a backup of a cluster
    listing  list backups (`etcd-operator list`)
    fetch    copy a backup to a file
    verify   read a backup back, and restore it on trial
    restore  restore a backup or a snapshot to a data directory
    members  its flags that name the members of the new cluster

    endpoints, keys  shared flags and what they mean
    outcome          exit codes, output for people and for programs
    progress         progress for people
    interrupts       SIGINT and SIGTERM as exceptions, so that everything is cleaned up

All of them are imported at each start, so they import what is large only when they run.
"""
