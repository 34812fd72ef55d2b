"""Which clusters there are, and what people decide of them."""
