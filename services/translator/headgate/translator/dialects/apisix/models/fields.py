"""Parts that the specs of several kinds have."""

from pydantic import Field

from headgate.translator.manifests.models import Model, Name, Seconds

DEFAULT_TIMEOUT_S = 60.0
"""Of Apache APISIX, for what of a `timeout` is not written."""


class Timeout(Model):
    """How long a route or an upstream waits."""

    connect: Seconds = Field(default=0.0, description="For a connection to the upstream.")
    send: Seconds = Field(default=0.0, description="Between two successful writes to the upstream.")
    read: Seconds = Field(default=0.0, description="Between two successful reads from the upstream.")


class SecretReference(Model):
    """A Secret, in whatever namespace."""

    name: Name = Field(description="Name of the Secret.")
    namespace: str = Field(default="", description="Namespace of the Secret; the object's own by default.")


class LocalSecret(Model):
    """A Secret in the object's own namespace."""

    name: Name = Field(description="Name of the Secret.")
