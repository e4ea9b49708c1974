"""Language, help, JSON types and signal handling of the commands."""
