"""What plugins are told: the configurations of the built-in plugins, one model each.

They are a part of the table's vocabulary, as routes are: the translator checks what users write against them, at the
object and with the field, and gateways make plugins of them. A third-party plugin has its model beside its code, which
only gateways know.

`catalogue` lists the models, which lie in folders by what the plugins do, as in the gateway. Beside these folders is
what they share: types of fields, variables, expressions, and how configurations are read, checked and hidden.
"""
