"""Reserved for the web console. There is none yet; this package only keeps the name."""
