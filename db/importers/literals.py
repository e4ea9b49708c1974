"""Parse lists and objects that exports hold as text, in JSON, Python or numpy notation."""

import ast
import json
import re
from typing import Any

MAX_LEVELS = 64
"""Nesting levels of lists and objects. Real exports have fewer than 20; code that traverses a value may recurse."""
OBJECT_REPR = re.compile(r"<[^<>\n]* at 0x[0-9a-fA-F]+>")
QUOTED_TEXT = r"(?<!\w)[bru]?(?:'(?:[^'\\]|\\.)*+(?:'|\Z)|\"(?:[^\"\\]|\\.)*+(?:\"|\Z))"
NUMPY_VALUE = re.compile(
    rf"({QUOTED_TEXT}|\b(?:None|nan|[\d.]+)|[\])}}])(\s+(?=[bru]?['\"]|None\b|nan\b|-?\d|[\[{{]|array\())?", re.DOTALL
)
"""A value of an array. numpy writes no commas between values, and Python would join the texts."""
MAX_BITS = 4_096
"""Bits of an integer; Python refuses to print one with more than 4,300 digits."""
MISSING_NAMES = ("nan", "inf", "NaT", "NA", "NaN", "Infinity", "null")
"""Names of missing values in lists that Python or numpy printed."""
CONSTANTS = {"true": True, "false": False}


def parse_if_literal(value: Any) -> Any:
    """Return the list, object or text that a text contains as a literal, or the value itself.

    A text with more than `MAX_LEVELS` nested lists and objects stays a text.
    """
    if not isinstance(value, str) or value.strip()[:1] not in ("[", "{", '"'):
        return value
    try:
        literal = json.loads(value)
    except (ValueError, RecursionError):
        try:
            literal = _convert_to_json(parse_python_literal(value.strip()))
        except ValueError:
            literal = None
    return value if literal is None or is_too_deep(literal) else literal


def parse_object(value: Any) -> dict[str, Any]:
    """Return the object that a value is, or that a text contains; {} if there is none."""
    value = parse_if_literal(value)
    return value if isinstance(value, dict) else {}


def is_too_deep(value: Any) -> bool:
    """Return whether lists and objects are nested in more than `MAX_LEVELS` levels."""
    level = [value]
    for _ in range(MAX_LEVELS):
        inner: list[Any] = []
        for part in level:
            if isinstance(part, dict):
                inner += part.values()
            elif isinstance(part, list | tuple | set | frozenset):
                inner += part
        level = [part for part in inner if isinstance(part, dict | list | tuple | set | frozenset)]
        if not level:
            return False
    return True


def parse_python_literal(text: str) -> dict[Any, Any] | list[Any] | str | None:
    """Return the list, object or text that Python or numpy printed; None if the text is none of them."""
    with_commas = NUMPY_VALUE.sub(lambda match: match[1] + (", " if match[2] else ""), text)
    for source in dict.fromkeys((with_commas, OBJECT_REPR.sub("None", with_commas))):
        try:
            literal = ast.literal_eval(_LiteralNormalizer().visit(ast.parse(source, mode="eval")))
            if isinstance(literal, dict | list | str):
                return None if is_too_deep(literal) else literal
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            continue
    return None


class _LiteralNormalizer(ast.NodeTransformer):
    """Turns the names of missing values into None, and numpy's arrays into lists."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in MISSING_NAMES:
            return ast.Constant(None)
        return ast.Constant(CONSTANTS[node.id]) if node.id in CONSTANTS else node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return ast.Constant(node.value.decode("utf-8", "replace")) if isinstance(node.value, bytes) else node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Name) and node.func.id == "array" and node.args:
            return self.visit(node.args[0])  # type: ignore[no-any-return]
        return node


def _convert_to_json(value: Any) -> Any:
    """Convert a value to JSON types: lists for tuples and sets, texts as names.

    Raises:
        ValueError: an integer has too many digits to be printed.
    """
    if isinstance(value, dict):
        return {name if isinstance(name, str) else str(name): _convert_to_json(part) for name, part in value.items()}
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise ValueError("a number with thousands of digits")
    return [_convert_to_json(part) for part in value] if isinstance(value, list | tuple | set | frozenset) else value
