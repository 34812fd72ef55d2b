"""Who of several processes leads: leases, and the rules by which they are held."""
