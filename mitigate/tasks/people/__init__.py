"""Measures that learn from people's ratings alone, crowd2, crowd_lm and people_valid: load > train > measure."""
