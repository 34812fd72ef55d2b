"""How commands are found, and how answers and errors look."""
