"""A finished run asked about a head and a relation: what it generated, or generates now, with the labels of its own
scorers."""
