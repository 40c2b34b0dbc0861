"""The regard classifiers, trained."""
