"""The `headgate` command: `up`, the services, and questions about manifests and running gateways."""
