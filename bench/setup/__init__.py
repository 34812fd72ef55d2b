"""Manifests, certificates, processes and stacks that measurements need."""
