"""Weights & Biases: the record of a run, its and its headlines."""
