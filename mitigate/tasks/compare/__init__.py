"""Finished runs side by side: a module for each kind (runs, audits, embeddings), and the skeleton they share (plan)."""
