"""Recipes: a file or folder a job, its stages in order. Recipes see the configuration, the run folder and the tracking;
stages see only the values that a recipe gives them."""
