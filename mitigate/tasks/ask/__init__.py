"""A finished run asked about a head and a relation: what it generated, or generates now, with the labels of its own
scorers. No stage of a recipe comes here, so that no stored result depends on it."""
