"""Systems under test and other foreign code that Yarus calls."""
