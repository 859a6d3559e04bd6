"""EtcdRoles and EtcdUsers: the roles and users of clusters, and what applications connect with."""
