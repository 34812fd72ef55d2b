"""GatewayClasses and Gateways: which listeners there are, and how they stand."""
