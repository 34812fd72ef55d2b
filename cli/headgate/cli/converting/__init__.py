"""Objects of other kinds as manifests of Gateway API that serve the same.

What is converted is the table that the objects make, so that annotations, plugins and middlewares of all dialects are
read by those who know them. What was written is translated again and compared with what was read: the comments of a
converted manifest say what differs, and nothing else has to know it.
"""
