"""Reading resources: every loader returns a `Loaded`, triples and what was odd about them."""
