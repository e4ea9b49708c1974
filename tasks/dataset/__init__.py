"""Case sets: frozen, made by a generator, labelled by people, audited."""
