"""Three views of a group, from finished runs: generated statements, its place in embeddings, implied statements."""
