"""Where backups are stored: objects under names, each whole or not there.

    protocol   what every store can do
    errors     what can go wrong, as one sentence that says what to do
    names      names of objects that are the same in every store
    urls       file://, s3://, gs:// and azblob:// as a store and a name
    retries    one time limit that only progress extends
    directory  a folder, such as a mounted PersistentVolumeClaim
    partial    a file of a folder that is still being written
    s3, gcs    services; each with its errors and its uploads in modules of their own
    parts      a stream in parts of one size

The SDKs of the services are imported when a store of theirs is opened. Nothing above this package sees an
HTTP status or an exception of an SDK.
"""
