"""Random document numbers with valid check digits. Imported by full name."""

import random


def card(chance: random.Random) -> str:
    """Return 16 digits that pass Luhn's check."""
    body = "2200" + f"{chance.randrange(10**11):011}"
    doubled = [int(digit) * 2 if index % 2 == 0 else int(digit) for index, digit in enumerate(body)]
    return body + str(-sum(value - 9 if value > 9 else value for value in doubled) % 10)


def snils(chance: random.Random) -> str:
    """Return a pension number in its usual spelling."""
    body = f"{chance.randrange(200, 999)}{chance.randrange(10**6):06}"
    check = sum(int(digit) * weight for digit, weight in zip(body, range(9, 0, -1), strict=True)) % 101 % 100
    return f"{body[:3]}-{body[3:6]}-{body[6:]} {check:02}"


def inn(chance: random.Random, length: int) -> str:
    """Return a tax number of an organisation (10 digits) or a person (12 digits)."""
    weights = [3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8]
    number = f"63{chance.randrange(10**7):07}" if length == 10 else f"63{chance.randrange(10**8):08}"
    while len(number) < length:
        used_weights = weights[-len(number) :]
        number += str(sum(int(digit) * weight for digit, weight in zip(number, used_weights, strict=True)) % 11 % 10)
    return number
