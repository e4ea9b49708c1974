"""What a value of somebody else's export says: the text in it, however it is wrapped."""

import ast
import json
import re
from typing import Any

MAX_LEVELS = 64
"""Lists and objects within each other. Real exports have fewer than twenty; code that walks a value may recurse."""
OBJECT_REPR = re.compile(r"<[^<>\n]* at 0x[0-9a-fA-F]+>")
TEXT = r"(?<!\w)[bru]?(?:'(?:[^'\\]|\\.)*+(?:'|\Z)|\"(?:[^\"\\]|\\.)*+(?:\"|\Z))"
NUMPY = re.compile(
    rf"({TEXT}|\b(?:None|nan|[\d.]+)|[\])}}])(\s+(?=[bru]?['\"]|None\b|nan\b|-?\d|[\[{{]|array\())?", re.DOTALL
)
"""The values of an array. numpy writes no commas between them, and Python would join the texts."""
MOST_BITS = 4_096
"""Of a whole number; Python refuses to write down one with more than 4,300 digits."""
NO_VALUE = ("nan", "inf", "NaT", "NA", "NaN", "Infinity", "null")
"""Names that stand for a missing value where Python or numpy writes a list down."""
CONSTANTS = {"true": True, "false": False}


def parsed(value: Any) -> Any:
    """What a text says, if it is a list or an object; else the text.

    A text with more than `MAX_LEVELS` lists and objects within each other stays a text.
    """
    if not isinstance(value, str) or value.strip()[:1] not in ("[", "{", '"'):
        return value
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        try:
            found = _as_json(parse_python(value.strip()))
        except ValueError:
            found = None
    return value if found is None or is_too_deep(found) else found


def parsed_object(value: Any) -> dict[str, Any]:
    """Return the object that a value is, or that a text says; {} if it is none."""
    value = parsed(value)
    return value if isinstance(value, dict) else {}


def is_too_deep(value: Any) -> bool:
    """Return whether more than `MAX_LEVELS` lists and objects are within each other."""
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


def parse_python(text: str) -> dict[Any, Any] | list[Any] | str | None:
    """Return the list, object or text that Python or numpy wrote down; None if the text is none of them."""
    with_commas = NUMPY.sub(lambda match: match[1] + (", " if match[2] else ""), text)
    for form in dict.fromkeys((with_commas, OBJECT_REPR.sub("None", with_commas))):
        try:
            found = ast.literal_eval(_Plain().visit(ast.parse(form, mode="eval")))
            if isinstance(found, dict | list | str):
                return None if is_too_deep(found) else found
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            continue
    return None


class _Plain(ast.NodeTransformer):
    """Turns the names of missing values into None, and numpy's arrays into lists."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in NO_VALUE:
            return ast.Constant(None)
        return ast.Constant(CONSTANTS[node.id]) if node.id in CONSTANTS else node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return ast.Constant(node.value.decode("utf-8", "replace")) if isinstance(node.value, bytes) else node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Name) and node.func.id == "array" and node.args:
            return self.visit(node.args[0])  # type: ignore[no-any-return]
        return node


def _as_json(value: Any) -> Any:
    """Return the value as JSON has it: lists instead of tuples and sets, names that are texts.

    Raises:
        ValueError: a whole number that is too long to be written down.
    """
    if isinstance(value, dict):
        return {name if isinstance(name, str) else str(name): _as_json(part) for name, part in value.items()}
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise ValueError("a number with thousands of digits")
    return [_as_json(part) for part in value] if isinstance(value, list | tuple | set | frozenset) else value
