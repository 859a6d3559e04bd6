"""What an EtcdRestore creates."""
