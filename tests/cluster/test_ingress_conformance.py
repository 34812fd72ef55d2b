"""The scenarios of the Ingress conformance suite on a real API server; the fixture `hands` is of this folder."""

from e2e.test_ingress_conformance import *  # noqa: F403 - the tests and their fixtures
