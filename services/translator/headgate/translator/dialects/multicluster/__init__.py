"""The `multicluster` dialect: ServiceExports of the Multi-Cluster Services API."""

from headgate.translator.dialects.multicluster.dialect import MULTICLUSTER

__all__ = ["MULTICLUSTER"]
