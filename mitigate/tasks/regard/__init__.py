"""The regard classifiers that come with the project, trained from scratch: load > train > measure."""
