"""Orders that follow from their number alone, so that whatever a reader finds can be compared row by row."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

SCHEMA = "order_id long, customer string, region string, day date, amount decimal(10,2), ordered_at timestamp"
COLUMNS = ("order_id", "customer", "region", "day", "amount", "ordered_at")
PARTITION_BY = "region,day"

_REGIONS = ("EU", "US", "Asia/Pacific")
_FIRST_DAY = date(2026, 1, 1)
_ORDERS_A_DAY = 5000

Order = tuple[int, str, str, date, Decimal, datetime]


def order(number: int) -> Order:
    day = _FIRST_DAY + timedelta(days=number // _ORDERS_A_DAY)
    midnight = datetime(day.year, day.month, day.day, tzinfo=timezone.utc)
    return (
        number,
        f"customer {number * 31 % 997}",
        _REGIONS[number % len(_REGIONS)],
        day,
        Decimal(number * 37 % 100_000) / 100,
        midnight + timedelta(milliseconds=number % _ORDERS_A_DAY * 17_000),
    )


def write_json(path: Path, numbers: Iterable[int]) -> None:
    """A file of orders as a stream would find it; complete once it has its name."""
    aside = path.with_name(f".{path.name}")
    aside.write_text("".join(_line(order(number)) for number in numbers))
    aside.rename(path)


def _line(row: Order) -> str:
    number, customer, region, day, amount, ordered_at = row
    return (
        json.dumps(
            {
                "order_id": number,
                "customer": customer,
                "region": region,
                "day": day.isoformat(),
                "amount": str(amount),
                "ordered_at": ordered_at.isoformat(),
            }
        )
        + "\n"
    )
