"""Personal data in texts: detection and pseudonyms."""
