"""What is published of an object: stripped of what translators do not read, its secrets sealed."""
