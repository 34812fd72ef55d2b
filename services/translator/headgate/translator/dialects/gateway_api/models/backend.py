"""Services that routes and their filters refer to."""

from headgate.translator.manifests.models import Model, Name, PortNumber


class BackendReference(Model):
    """A Service."""

    group: str = ""
    kind: str = "Service"
    namespace: str = ""
    """Empty: that of the route."""
    name: Name
    port: PortNumber | None = None

    @property
    def is_service(self) -> bool:
        """Whether it is a Service."""
        return (self.group, self.kind) == ("", "Service")
