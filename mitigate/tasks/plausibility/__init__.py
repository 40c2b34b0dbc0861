"""The plausibility classifiers, trained from scratch on ConceptNet train100k: load > train > measure."""
