"""The crowd classifier, which learns from people's ratings alone: load > train > measure."""
