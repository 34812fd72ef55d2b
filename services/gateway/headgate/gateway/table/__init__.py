"""The route table as a gateway uses it: compiling, matching, explaining. No I/O, no clock."""
