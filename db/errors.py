"""What can go wrong outside our own code, told apart by who can mend it."""


class InputError(ValueError):
    """The user gave something that cannot be used: the message names it, its place and the way out. Exit code 2."""


class DatabaseUnavailable(RuntimeError):
    """The database cannot be reached or refuses us: the message says what to do. Exit code 3."""
