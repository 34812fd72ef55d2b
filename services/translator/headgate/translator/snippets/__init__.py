"""Snippets of nginx's configuration, as ingress-nginx takes them: read, checked, and said in the table's vocabulary.

Nothing of a snippet is ever handed to another language or server. `grammar` reads its directives as nginx would,
`interpret` says what each of them means, and what has no meaning here refuses the whole snippet, by name and line.
The room knows nothing of annotations: texts come in, patches of routes go out.
"""
