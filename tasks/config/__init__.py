"""Settings, parameters, connections, and the redaction of secrets in them."""
