"""The shipped regard classifiers, trained from scratch: load > train > measure."""
