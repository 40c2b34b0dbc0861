"""Bias in knowledge-graph embeddings."""
