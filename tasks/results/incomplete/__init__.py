"""What an evaluation of rankings says of its labels: how far it could be wrong, and whom it has measured."""
