"""Social Bias Frames."""
