"""What is read of a running Headgate, and what is changed there."""
