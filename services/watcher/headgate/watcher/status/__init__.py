"""What the status writer is made of.

- `merging`: what several tables say of one object, as one status
- `load_balancer`, `conditions`: what to write into an object's status, if anything
- `events`, `event_writer`: Kubernetes Events, each once, and their queue
- `accounts`: a ServiceAccount for each Gateway, where that is wanted
- `requests`: what is asked of the API server, bounded and counted
- `work_queue`: each object at most once in work, the others go on
- `token_bucket`: no more than so many requests a second
"""
