"""What models in the clouds of Amazon and Google want besides: signatures, tokens, and forms of their own."""
