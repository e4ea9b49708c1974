"""Numbers of papers with right check digits, made at random. Imported by full name."""

import random


def card(chance: random.Random) -> str:
    """16 digits that pass Luhn's check."""
    body = "2200" + f"{chance.randrange(10**11):011}"
    doubled = [int(c) * 2 if i % 2 == 0 else int(c) for i, c in enumerate(body)]
    return body + str(-sum(d - 9 if d > 9 else d for d in doubled) % 10)


def snils(chance: random.Random) -> str:
    """A pension number as it is usually written."""
    body = f"{chance.randrange(200, 999)}{chance.randrange(10**6):06}"
    check = sum(int(digit) * weight for digit, weight in zip(body, range(9, 0, -1), strict=True)) % 101 % 100
    return f"{body[:3]}-{body[3:6]}-{body[6:]} {check:02}"


def inn(chance: random.Random, length: int) -> str:
    """A tax number of an organisation (10) or a person (12)."""
    weights = [3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8]
    number = f"63{chance.randrange(10**7):07}" if length == 10 else f"63{chance.randrange(10**8):08}"
    while len(number) < length:
        of = weights[-len(number) :]
        number += str(sum(int(d) * w for d, w in zip(number, of, strict=True)) % 11 % 10)
    return number
