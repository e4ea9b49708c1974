"""Prefect: its server, states, artifacts and events, and the incidents made of them."""
