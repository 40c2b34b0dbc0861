"""Knowledge-graph embeddings: how a head, a relation and a tail, each a vector, are scored. Tensors only."""
