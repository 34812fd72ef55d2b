"""What bodies and answers become."""
