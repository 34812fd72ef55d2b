"""Objects that other objects refer to: Services, endpoints, certificates, classes, Gateways."""
