"""What answers and references say: facts found by rule, claims, nuggets and citations, and which texts support them."""
