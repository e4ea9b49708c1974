"""Case sets: frozen, synthetic, annotated by people, and audited."""
