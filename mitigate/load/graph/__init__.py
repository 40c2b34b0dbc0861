"""Knowledge graphs: triples of ids, split into train, valid and test, with a name for each id."""
