"""Reading what people wrote into typed values, and the words for what becomes of it."""
