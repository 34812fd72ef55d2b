"""Objects from a Kubernetes API server, by list and watch.

- `outages`: whether the server itself is away, asked once for all kinds
- `patience`: whether an outage or a backoff is for what went wrong
- `listing`: one list, in pages
- `reflector`: one kind in one scope, kept up to date for ever
- `merge`: several namespaces of a kind as one
- `follower`: the best version of a kind that the server has, now and later
- `references`: what objects name
- `named_only`: of Secrets and ConfigMaps, those that are named
- `source`: all kinds together, as the publisher wants them
- `present`: all kinds as they are now, asked once
"""
