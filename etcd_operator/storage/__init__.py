"""Where backups are stored: objects under names, each whole or not there. Begin with `protocol` and `urls`.

The SDKs of the services are imported when a store of theirs is opened. Nothing above this package sees an
HTTP status or an exception of an SDK.
"""
