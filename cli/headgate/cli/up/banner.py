"""What `up` prints once traffic flows: where things are, and a line to try."""

from headgate.cli.up.options import UpOptions


class Banner:
    """The lines that a user needs next."""

    def __init__(self, options: UpOptions, admin_url: str, nats_url: str) -> None:
        self._options = options
        self._admin_url = admin_url
        self._nats_url = nats_url

    async def lines(self) -> list[str]:
        """Return the lines; the table is asked for a host to try."""
        options = self._options
        return [
            "ready",
            f"  http      http://127.0.0.1:{options.http_port}/",
            f"  https     https://127.0.0.1:{options.https_port}/",
            f"  admin     {self._admin_url}/readyz, /metrics",
            f"  nats      {self._nats_url}",
            f"  data      {options.data_dir}",
        ]
