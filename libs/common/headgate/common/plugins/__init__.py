"""What plugins are told: the configurations of the built-in plugins, one model each.

They are a part of the table's vocabulary, as routes are: the translator checks what users write against them, at the
object and with the field, and gateways make plugins of them. A third-party plugin has its model beside its code, which
only gateways know.
"""
