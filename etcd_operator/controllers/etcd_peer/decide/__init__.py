"""What is done for one EtcdPeer: observed state, actions, ordered rules."""
