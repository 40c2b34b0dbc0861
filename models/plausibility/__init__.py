"""Networks that judge triples: of a head and a tail, two phrases, which relations hold between them.

Each has `relations`, the names of what it judges; `encode(phrases)`, each phrase's word pieces; and, called with the
pieces of n heads and of n tails, gives (n, relations) logits. All relations at once, because that costs nothing beside
reading the pair, and because the phrase of a relation does not tell it from all others: "requires" words two."""
