"""The validating webhook: what the API server asks before it lets an object in, and what it is told.

From HTTP inwards: `server` (TLS and aiohttp), `certificate` (its files), `review` (AdmissionReview v1), `question`
(what is asked of the translator, if anything), `admit` (the asking), `verdict` (what is made of the answer).
"""
