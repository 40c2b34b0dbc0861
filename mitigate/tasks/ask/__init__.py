"""Questions about a head and a relation to a finished run: tails that it generated, or generates now, with the labels
of its own scorers."""
