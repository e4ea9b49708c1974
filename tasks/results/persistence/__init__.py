"""Asked once more: which of the changes that a night would ring for are there when the system is asked again."""
