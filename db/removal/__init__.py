"""What is removed: by retention, or because a source goes."""
