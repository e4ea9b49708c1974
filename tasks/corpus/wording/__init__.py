"""How people word things: what asks only, which language it is, and what is no question."""
