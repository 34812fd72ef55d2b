"""`body-transformer` and its parts."""
