"""What is done about roles and users; without I/O."""
