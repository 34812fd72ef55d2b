"""What a `headgate up` on this machine says about itself, in its data directory."""

from pydantic import BaseModel, ConfigDict


class UpState(BaseModel):
    """State of a running `up`."""

    model_config = ConfigDict(frozen=True)

    pid: int
    nats_url: str
    store: str = ""
    """Address of the store of tables; empty: as the settings say."""
    admin_url: str
    """Admin site of the gateway."""
    console_url: str = ""
    """Empty: there is no console."""
    http_port: int
    https_port: int
    processes: dict[str, int]
    """Name of each service to its process id; absent while it is being restarted."""
    admin_urls: dict[str, str] = {}
    """Admin sites of watcher and translator while they run."""
    restarts: dict[str, int] = {}
    """How often each service was started again."""
    is_ready: bool = False
    """Whether a table is served."""
