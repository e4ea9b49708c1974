"""Test the parsing of cells, and the rejection of invalid ones."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from yarus.db.importers.cells import CellStyle, parse_labels
from yarus.db.importers.column_parsers import BadValue, parse_value


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("id", 12, "12"),
        ("id", 12.0, "12"),
        ("answer", "  ", None),
        ("score", float("nan"), None),
        ("score", "5", 5),
        ("score", "5.0", 5),
        ("created_at", "2026-03-05", datetime(2026, 3, 5, tzinfo=UTC)),
        ("created_at", "2026-03-05 10:00:00+0300", datetime(2026, 3, 5, 10, tzinfo=timezone(timedelta(hours=3)))),
        *[
            ("created_at", text, datetime(2026, 3, 5, 9, 5, tzinfo=UTC))
            for text in ("2026-03-05 9:05", "2026-3-5 09:05", "2026/03/05 9:05:00", "2026-03-05T9:05Z", "5.3.2026 9:05")
        ],
        *[
            ("created_at", text, datetime(2026, 3, 5, 10, 30, tzinfo=UTC))
            for text in ("2026-03-05 10:30:00 UTC", "2026-03-05 10:30:00.000000 UTC", "05.03.26 10:30")
        ],
        ("created_at", "2026/3/5", datetime(2026, 3, 5, tzinfo=UTC)),
        ("created_at", 1712101300, datetime(2024, 4, 2, 23, 41, 40, tzinfo=UTC)),
        ("created_at", "1712101300.5", datetime(2024, 4, 2, 23, 41, 40, 500_000, tzinfo=UTC)),
        ("created_at", "1712101300123", datetime(2024, 4, 2, 23, 41, 40, 123_000, tzinfo=UTC)),
        ("created_at", 1712101300123456, datetime(2024, 4, 2, 23, 41, 40, 123_456, tzinfo=UTC)),
        ("answerable", "Да", True),
        ("answerable", 0, False),
        ("answerable", "FALSE", False),
    ],
)
def test_parse_converts_cells(column: str, value: object, expected: object) -> None:
    assert parse_value(column, value) == expected


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("question", ["a"]),
        ("question", True),
        ("score", "5,0"),
        ("score", 4.5),
        ("score", 10**12),
        ("score", True),
        ("turn", "inf"),
        ("created_at", "05/03/2026"),  # May or March
        ("created_at", "31.02.2026"),
        ("created_at", "2026-13-01 9:05"),
        ("created_at", "26.03.05"),  # the year may be first or last
        ("created_at", "05.03.99"),
        ("created_at", "2026-03/05"),
        ("created_at", "2026-03-05 9"),
        ("created_at", 999_999_999),  # not a recent time in any unit
        ("created_at", "500000000000"),
        ("created_at", True),
        ("created_at", 10**400),
        ("created_at", "1" * 5_001),
        ("created_at", "0001-01-01T00:00:00+14:00"),
        ("created_at", "0001-01-01"),
        ("created_at", "9999-12-31T23:59:59-12:00"),
        ("created_at", "2026-03-05T24:00:00"),
        ("created_at", "2026-03-05T10:30:60"),
        ("created_at", "infinity"),
        ("answerable", 2),
        ("score", 10**400),
        ("turn", "1" * 5_001),
        ("embedding", [10**400]),
        ("embedding", f"[{'1' * 5_001}]"),
        ("embedding", [[1.0]]),
        ("embedding", [float("nan")]),
        ("embedding", []),
    ],
)
def test_parse_rejects_invalid_cells(column: str, value: object) -> None:
    with pytest.raises(BadValue):
        parse_value(column, value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a; b;a;", ["a", "b"]),
        ("[1, 2]", ["1", "2"]),
        ('{"1": 0.5, "2": null}', {"1": 0.5}),
        ([("1", 2)], {"1": 2}),
        ([], []),
        (5, ["5"]),
    ],
)
def test_parse_labels_returns_ids_or_grades(value: object, expected: object) -> None:
    assert parse_labels(value, CellStyle()) == expected


@pytest.mark.parametrize("value", [{"1": 1e308}, '{"1": "high"}', {"1": 10**400}, f"[{'1' * 5_001}]"])
def test_parse_labels_rejects_invalid_cells(value: object) -> None:
    with pytest.raises(BadValue):
        parse_labels(value, CellStyle())
