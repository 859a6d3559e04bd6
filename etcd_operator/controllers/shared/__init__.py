"""What the controllers of several resources use."""
