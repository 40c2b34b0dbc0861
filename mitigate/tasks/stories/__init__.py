"""Harms of a generator's stories, as functions of plain arguments: train on texts, generate, label, measure."""
