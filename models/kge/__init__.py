"""Knowledge-graph embeddings: scores of a head, a relation and a tail, each a vector. Tensors only."""
