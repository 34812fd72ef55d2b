"""Which of several objects goes first, and how a message says so."""

from headgate.translator.fragments.fragment import Identity


def seniority_of(owner: Identity, loser: Identity) -> str:
    """Say why an object goes before another."""
    if owner.created_at != loser.created_at:
        return "which is older"
    is_namesake = owner.ref[3:] == loser.ref[3:]
    return f"which is as old and goes first by {'the name of its cluster' if is_namesake else 'name'}"


def describe(identity: Identity) -> str:
    """Return an object as a message names it."""
    ref = identity.ref
    return f"{identity.kind} {ref.namespace}/{ref.name} in cluster {ref.cluster}"
