"""Weights & Biases: the record of a run, its headlines, charts and saved views."""
