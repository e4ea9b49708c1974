"""The steps of the tiers."""
