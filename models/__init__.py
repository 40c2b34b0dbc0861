"""Networks: they know text and tensors, nothing of triples or bias, and import nothing of mitigate."""
