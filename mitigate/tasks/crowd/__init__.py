"""The crowd classifier, which learns from people alone: load > train > measure."""
