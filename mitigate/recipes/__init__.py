"""One file a job, its stages in order. Recipes see the configuration, the store and the tracking; stages see
only what a recipe hands them."""
