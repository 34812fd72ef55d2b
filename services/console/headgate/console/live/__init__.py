"""What the console knows at every moment: the table that is served, traffic, who serves it, and what is wrong."""
