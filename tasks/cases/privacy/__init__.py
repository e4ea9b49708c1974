"""Personal data in texts: recognised and replaced by pseudonyms."""
