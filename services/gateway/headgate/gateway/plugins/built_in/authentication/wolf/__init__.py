"""`wolf-rbac`, the server that it asks, and the pages of `public-api` that belong to it."""
