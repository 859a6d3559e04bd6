"""Where backups are stored: objects under names, each whole or not there.

    protocol   what every store can do
    errors     what can go wrong, as one sentence that says what to do
    names      names of objects that are the same in every store
    urls       file://, s3://, gs:// and azblob:// as a store and a name
    directory  a folder, such as a mounted PersistentVolumeClaim; partial: a file that is being written
    s3, gcs, azure  the services, each with its client, errors and uploads in modules beside it
    retries    one time limit that only progress extends
    parts      a stream in parts of one size; body: a part as the body of a request
    failures   the texts of errors that the services share

The SDKs of the services are imported when a store of theirs is opened. Nothing above this package sees an
HTTP status or an exception of an SDK.
"""
