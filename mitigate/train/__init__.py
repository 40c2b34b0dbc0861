"""Training: the order of a network's examples, their fit with Lightning, and checkpoints that survive a kill."""
