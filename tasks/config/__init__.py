"""Settings, parameters, connections, and what of them is secret."""
