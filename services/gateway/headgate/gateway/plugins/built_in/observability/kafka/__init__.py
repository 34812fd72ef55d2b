"""`kafka-logger` and its parts."""
