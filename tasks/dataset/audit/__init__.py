"""What is wrong with a case set."""
