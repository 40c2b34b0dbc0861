"""Three sides of one group, from finished runs: what is said of it, where embeddings place it, what is implied."""
