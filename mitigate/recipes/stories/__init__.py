"""What story generators say of targets."""
