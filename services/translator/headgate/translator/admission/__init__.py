"""Admission: what would be wrong with an object if it were let in, asked by watchers before it is.

`examine` is the translation itself, run on the live world plus the proposed object (`dry_world`), and keeps nothing of
it. `desk` is the shell around it.
"""
