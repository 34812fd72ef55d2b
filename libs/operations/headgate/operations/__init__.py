"""What the command line and the console share: reading what a running Headgate serves, and changing it.

`tables` reads revisions and what stands in them, `status` what runs and what is wrong, `clusters` what people decided
of clusters. `changing` pins a table, unpins it and decides rollouts. `committing` makes revisions and `rollouts`
compares replicas; the translator uses both too. Answers are values, and as JSON they look the same everywhere. How
they look as text is up to the caller.

Rejected: a console that calls the command line, or the other way round. Both would then depend on how the other one
prints its answers.
"""
