"""Objects from a Kubernetes API server, by list and watch.

- `config`: which server, and as whom (kubeconfig or service account; tokens and certificates rotate)
- `transport`: requests and streams of lines; errors as our own
- `wire`: what answers mean: Status objects, lists, watch events
- `backoff`: how long to wait before asking again
- `outages`: whether the server itself is away, asked once for all kinds
- `patience`: which of the two is for what went wrong
- `kinds`: which group and version a server has of each kind
- `listing`: one list, in pages
- `reflector`: one kind in one scope, kept up to date for ever
- `merge`: several namespaces of a kind as one
- `follower`: the best version of a kind that the server has, now and later
- `trouble`: log lines, each once
- `source`: all kinds together, as the publisher wants them
- `present`: all kinds as they are now, asked once

The library `kubernetes_asyncio` gives configuration, credentials and TLS. Its `Watch` and its models are not used:
they hang on half-open connections, repeat an expired version and decode every event three times.
"""
