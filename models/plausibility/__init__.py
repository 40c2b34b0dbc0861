"""Networks of the plausibility of triples: a phrase becomes a vector, and a relation is a matrix between two phrases.

A phrase encoder has `encode(phrases)`, each phrase's word pieces, and, called with the pieces of n phrases, gives
(n, width). There are two: the mean of words' vectors, as in Bilinear AVG of Li et al. (2016), and all-MiniLM-L6-v2."""
