"""Middlewares as plugins: what each kind becomes, and how an object's list of them is followed."""
