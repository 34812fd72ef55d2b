"""`attach-consumer-label`: tell upstreams labels of the consumer, in headers."""

from headgate.common.plugins.traffic.attach_consumer_label import AttachConsumerLabelConfig
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request


class AttachConsumerLabel(Plugin[AttachConsumerLabelConfig]):
    """Sets the headers, and drops what clients send under their names."""

    name = "attach-consumer-label"
    order = 2399
    preview = "passes"
    Config = AttachConsumerLabelConfig
    is_shareable = True
    waits_for_consumer = True

    def __init__(self, config: AttachConsumerLabelConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._labels = [(header, label[1:]) for header, label in config.headers.items()]

    def on_request(self, request: Request) -> None:
        """Set the headers."""
        labels = request.consumer.labels if request.consumer is not None else {}
        for header, label in self._labels:
            value = labels.get(label)
            if value is None:
                request.headers.remove(header)
            else:
                request.headers.set(header, value)
