"""Social Bias Frames: from posts to labels and explanations."""
