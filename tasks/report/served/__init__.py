"""Pages of the report that a server makes when they are asked for."""
