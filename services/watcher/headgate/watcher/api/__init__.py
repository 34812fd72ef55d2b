"""The client of one API server.

- `config`: which server, and as whom (kubeconfig or service account; tokens and certificates rotate)
- `transport`: requests and streams of lines; errors as our own
- `wire`: what answers mean: Status objects, lists, watch events
- `kinds`: which group and version a server has of each kind
- `backoff`: how long to wait before asking again
- `trouble`: log lines, each once
- `lease`: a Lease object as the lease of one of several watchers

The library `kubernetes_asyncio` gives configuration, credentials and TLS. Its `Watch` and its models are not used:
they hang on half-open connections, repeat an expired version and decode every event three times.
"""
