"""The spec of an Ingress v1 as its author wrote it; `parse` checks what values must be besides their types."""

from pydantic import StrictInt

from headgate.translator.manifests.shapes import Shape


class Port(Shape):
    """A port of a Service, by number or by name."""

    name: str | None = None
    number: StrictInt | None = None


class Service(Shape):
    """A backend that is a port of a Service."""

    name: str | None = None
    port: Port | None = None


class Resource(Shape):
    """A backend that is some other object."""

    api_group: str | None = None
    kind: str | None = None
    name: str | None = None


class Backend(Shape):
    """Where requests go."""

    service: Service | None = None
    resource: Resource | None = None


class Path(Shape):
    """A path of a rule."""

    path: str | None = None
    path_type: str | None = None
    backend: Backend | None = None


class Http(Shape):
    """The paths of a rule."""

    paths: tuple[Path | None, ...] | None = None


class Rule(Shape):
    """A host and its paths."""

    host: str | None = None
    http: Http | None = None


class Tls(Shape):
    """A certificate and the hosts that it is for."""

    hosts: tuple[str | None, ...] | None = None
    secret_name: str | None = None


class Spec(Shape):
    """The spec."""

    ingress_class_name: str | None = None
    default_backend: Backend | None = None
    rules: tuple[Rule | None, ...] | None = None
    tls: tuple[Tls | None, ...] | None = None
