"""Personal data in texts: found, and replaced by pseudonyms."""
