"""What every service's process does around its own work."""
