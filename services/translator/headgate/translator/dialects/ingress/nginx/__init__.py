"""What annotations of ingress-nginx make of an Ingress: patches of its routes and upstreams, and further routes.

An Ingress is read so if its class is one of ingress-nginx, or if it has an annotation with its prefix.
"""
