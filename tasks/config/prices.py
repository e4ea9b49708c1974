"""What a model costs."""

from datetime import date

from pydantic import BaseModel, Field


class Price(BaseModel, extra="forbid", allow_inf_nan=False):
    """What a model costs, and since when that is known."""

    input: float = Field(ge=0, le=1_000_000, description="USD per million input tokens")
    output: float = Field(ge=0, le=1_000_000, description="USD per million output tokens")
    as_of: date = Field(description="date of the provider's price list")
