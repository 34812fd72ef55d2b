"""What a report is made of: figures, promises, the machine, tables, and the README."""
