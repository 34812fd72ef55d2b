"""What manifests would change, of a world that is at hand.

`rehearsal` applies them to a translation that serves nothing any more, `child` makes such a translation of the one that
does, and `desk` answers what the command asks.
"""
