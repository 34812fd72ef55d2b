"""The objects of every cluster, their versions, and the derived values that ask for them."""
