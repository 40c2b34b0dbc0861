"""Generators: opened, trained, probed and measured on held-out triples."""
