"""What can be wrong with a model or a policy of Casbin, and with a decision.

ValueError
    CasbinFault: a text that is not followed
    NoAddress: no decision, as a value is no IP address
RuntimeError
    TooMuchWork: a decision that was given up
"""


class CasbinFault(ValueError):
    """A model or a policy that is not followed; the text says where, why, and what would be."""


class TooMuchWork(RuntimeError):
    """A decision took more work than one request may make."""


class NoAddress(ValueError):
    """`ipMatch` was asked about a text that is no IP address."""
