"""Values: the types of what stands in a suite file, for reading it and for the editors' schema.

Each is read by a function of ``quantity``, or by pydantic itself.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from pydantic import Field, PlainValidator, StringConstraints, WithJsonSchema

from pytest_llmperf.model.expectation import Expected
from pytest_llmperf.model.suite import MOST, Lengths
from pytest_llmperf.suitefile.quantity import (
    DAY,
    DURATION,
    PERCENTAGE,
    Quantity,
    burstiness,
    day,
    lengths,
    margin,
    quantity,
    scalar,
    seconds,
    share,
    shares,
    times,
)

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
"""Names become parts of test ids and of file names."""

Text = Annotated[str, StringConstraints(min_length=1)]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-fA-F]{64}$")]
Count = Annotated[int, Field(ge=1, le=MOST)]
Rate = Annotated[float, Field(gt=0, le=MOST)]
Names = Annotated[list[Text], Field(min_length=1)]
Seconds = Annotated[float, PlainValidator(seconds), WithJsonSchema({"type": "string", "pattern": DURATION})]
_QUANTITY = {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": PERCENTAGE}]}
Variation = Annotated[Quantity, PlainValidator(quantity), WithJsonSchema(_QUANTITY)]
Margin = Annotated[
    Quantity | Literal["auto"],
    PlainValidator(margin),
    WithJsonSchema({"anyOf": [{"const": "auto"}, *_QUANTITY["anyOf"]]}),
]
Times = Annotated[float, PlainValidator(times), WithJsonSchema({"type": "number", "exclusiveMinimum": 0})]
Day = Annotated[date, PlainValidator(day), WithJsonSchema({"type": "string", "format": "date", "pattern": DAY})]
Scalar = Annotated[
    Expected, PlainValidator(scalar), WithJsonSchema({"type": ["string", "number", "boolean"], "minLength": 1})
]
_COUNT = {"type": "integer", "minimum": 1, "maximum": MOST}
_POSITIVE = {"type": "number", "exclusiveMinimum": 0}
Length = Annotated[
    int | Lengths,
    PlainValidator(lengths),
    WithJsonSchema(
        {
            "anyOf": [
                _COUNT,
                {
                    "type": "object",
                    "properties": {"uniform": {"type": "array", "items": _COUNT, "minItems": 2, "maxItems": 2}},
                    "required": ["uniform"],
                    "additionalProperties": False,
                },
                {
                    "type": "object",
                    "properties": {"mean": _POSITIVE, "stdev": _POSITIVE, "min": _COUNT, "max": _COUNT},
                    "required": ["mean", "stdev", "min", "max"],
                    "additionalProperties": False,
                },
            ]
        }
    ),
]
Burstiness = Annotated[
    float | Literal["constant"],
    PlainValidator(burstiness),
    WithJsonSchema({"anyOf": [_POSITIVE, {"const": "constant"}]}),
]
_SHARE = {"anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "string", "pattern": PERCENTAGE}]}
Share = Annotated[float, PlainValidator(share), WithJsonSchema(_SHARE)]
Shares = Annotated[
    tuple[float, float],
    PlainValidator(shares),
    WithJsonSchema({"type": "array", "items": _SHARE, "minItems": 2, "maxItems": 2}),
]
