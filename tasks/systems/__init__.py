"""Systems under test, and whatever else is called that is not ours."""
