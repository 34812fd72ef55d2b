"""The validating webhook: what the API server asks before it lets an object in, and what it is told.

From HTTP inwards: `server` (TLS and aiohttp), `certificate` (what it presents), `review` (AdmissionReview v1),
`question` (what is asked of the translator, if anything), `admit` (the asking), `verdict` (what is made of the
answer).

A certificate that the watchers keep themselves: `issuing` (how it is made), `rotation` (when), `kept_secret` (where),
`trusted_bundle` (who is told its authority), `keeper` (the watcher that leads).
"""
