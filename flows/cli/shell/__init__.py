"""What the commands stand in: their language, help, documents, and how they are stopped."""
