"""Several workers behind one set of ports, as one replica."""
