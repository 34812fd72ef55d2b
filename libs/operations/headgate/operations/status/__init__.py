"""What runs, who serves which revision, how objects stand, and what is wrong."""
