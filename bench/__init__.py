"""Measures Headgate beside nginx, HAProxy and Envoy, its propagation of changes, and its behaviour at scale.

`python -m bench --help` lists the parts; docs/bench.md says how each figure comes about.
"""
