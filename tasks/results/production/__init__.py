"""How far the evaluated system does what production did with the same questions."""
