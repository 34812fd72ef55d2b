"""Upstreams as routes of Apache APISIX refer to them, and how requests are split over several."""
