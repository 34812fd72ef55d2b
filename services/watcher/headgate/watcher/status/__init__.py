"""What the status writer is made of.

- `work_queue`: each object at most once in work, the others go on
- `token_bucket`: no more than so many requests a second
- `load_balancer`: what to patch in an Ingress, if anything
- `events`: Kubernetes Events, each once
"""
