"""Damage files: their bytes, or the values inside, as deep as formats are nested in each other."""

import gzip
import json
import struct
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

import srsly

# Text that replaces a value of JSON. Some of it is not JSON, and some of it is large or deep.
LITERALS = [
    *("null", "true", "false", '""', '"x"', "[]", "{}", "[[]]", '[{"a": 1}]', '{"": null}', '"\\ud800"', '"\\u0000"'),
    *("0", "1", "2", "-1", "3", "0.5", "1e-400", "1e308", "1e400", "-1e999", "NaN", "Infinity", "-Infinity", "-0.0"),
    *("255", "65536", "1048576", "1048577", "2147483647", "2147483648", "4294967296", "9223372036854775807"),
    *("9223372036854775808", "-9223372036854775809", "1" * 400, "1" * 5000, '"' + "a" * 100_000 + '"'),
    *("[" * 900 + "]" * 900, "[" * 100_000, "[" * 100_000 + "]" * 100_000, '{"a":' * 50_000 + "1" + "}" * 50_000),
]
VALUES: list[Any] = [
    *(None, True, False, "", "x", b"", b"x", [], {}, [[]], [None], {"": None}, 0, 1, 2, -1, 3, 0.5, 1e308, 1e-320),
    *(float("nan"), float("inf"), float("-inf"), 2**20, 2**20 + 1, 2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63, -(2**63)),
    *(
        "a" * 10_000,
        b"a" * 10_000,
        [0] * 1000,
        {b"nd": True, b"type": "O", b"kind": b"", b"shape": [1], b"data": b"1" * 8},
    ),
    *(
        {b"nd": True, b"type": "<f4", b"kind": b"", b"shape": [2**40, 2**40], b"data": b""},
        {b"complex": True, b"data": "x"},
    ),
]
BYTES = [
    b"\x00",
    b"\xff",
    b"\x80",
    b"\n",
    b"\r",
    b"\t",
    b" ",
    b'"',
    b"{",
    b"[",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"\x1f\x8b",
]
INTEGERS = [
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    2**24,
    2**30,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**40,
    2**62,
    2**63 - 1,
    2**64 - 1,
]
MOST_BYTES = 300_000  # of an input

Damage = Callable[[bytes, Random], bytes]


def mutate(data: bytes, random: Random) -> bytes:
    """Damage the contents of a file.

    data (bytes): The contents.
    random (Random): Decides how.
    RETURNS (bytes): Other contents, which may be equal by chance.
    """
    for _ in range(random.choice([1, 1, 1, 2, 2, 3, 6])):
        data = _mutate_once(data, random)
    return data[:MOST_BYTES]


def _mutate_once(data: bytes, random: Random) -> bytes:
    if random.random() < 0.7:
        for mutate_inside in (_mutate_gzip, _mutate_zlib, _mutate_safetensors, _mutate_json, _mutate_msgpack):
            try:
                return mutate_inside(data, random)
            except (ValueError, OSError, EOFError, zlib.error, struct.error, RecursionError, OverflowError, TypeError):
                continue  # it is not of this format, or its damaged value cannot be written in it
    return random.choice(DAMAGES)(data, random)


# Bytes


def _flip_bits(data: bytes, random: Random) -> bytes:
    changed = bytearray(data or b"\0")
    for _ in range(random.choice([1, 1, 2, 8])):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _insert(data: bytes, random: Random) -> bytes:
    start = random.randint(0, len(data))
    return data[:start] + random.choice([*BYTES, random.randbytes(4)]) * random.choice([1, 1, 2, 100]) + data[start:]


def _overwrite_integer(data: bytes, random: Random) -> bytes:
    size = random.choice([1, 2, 4, 8])
    value = random.choice(INTEGERS) & (1 << 8 * size) - 1
    start = random.randint(0, max(0, len(data) - size)) if random.random() < 0.8 else 0
    return data[:start] + value.to_bytes(size, random.choice(["little", "big"])) + data[start + size :]


def _delete(data: bytes, random: Random) -> bytes:
    start = random.randint(0, len(data))
    return data[:start] + data[start + random.choice([1, 1, 2, 8, 64, 1000]) :]


def _cut(data: bytes, random: Random) -> bytes:
    return data[: random.randint(0, len(data))]


def _repeat(data: bytes, random: Random) -> bytes:
    start = random.randint(0, len(data))
    stop = start + random.choice([1, 4, 16, 256])
    return data[:start] + data[start:stop] * random.choice([2, 3, 50]) + data[stop:]


def _swap_parts(data: bytes, random: Random) -> bytes:
    first, second = sorted((random.randint(0, len(data)), random.randint(0, len(data))))
    return data[second:] + data[first:second] + data[:first]


def _edit_line(data: bytes, random: Random) -> bytes:
    """Repeat, drop or move a line, or replace one of its fields by a literal."""
    lines = data.split(b"\n")
    line = random.randrange(len(lines))
    action = random.randrange(4)
    if action == 0:
        lines[line:line] = [lines[line]] * random.choice([1, 2, 30])
    elif action == 1:
        del lines[line]
    elif action == 2:
        lines.append(lines.pop(line))
    else:
        separator = next((mark for mark in (b"\t", b" = ", b" ") if mark in lines[line]), b" ")
        fields = lines[line].split(separator)
        fields[random.randrange(len(fields))] = random.choice(LITERALS).encode()
        lines[line] = separator.join(fields)
    return b"\n".join(lines)


DAMAGES: list[Damage] = [
    *(_flip_bits, _flip_bits, _insert, _overwrite_integer, _overwrite_integer, _delete, _cut, _repeat, _swap_parts),
    _edit_line,
]


# Formats


def _mutate_gzip(data: bytes, random: Random) -> bytes:
    return gzip.compress(_mutate_once(gzip.decompress(data), random), 1, mtime=0)


def _mutate_zlib(data: bytes, random: Random) -> bytes:
    return zlib.compress(_mutate_once(zlib.decompress(data), random), 1)


def _mutate_safetensors(data: bytes, random: Random) -> bytes:
    (size,) = struct.unpack_from("<Q", data)
    header, rest = data[8 : 8 + size], data[8 + size :]
    if len(header) < size or not header.startswith(b"{"):
        raise ValueError("not safetensors")
    if random.random() < 0.3:
        rest = _damage_floats(rest, random)
    else:
        header = _mutate_json(header, random)
    return struct.pack("<Q", len(header)) + header + rest


def _damage_floats(data: bytes, random: Random) -> bytes:
    start = 4 * random.randint(0, max(0, len(data) // 4 - 1))
    value = random.choice([float("nan"), float("inf"), -float("inf"), 3e38, 1e-45, 0.0])
    return data[:start] + struct.pack("<f", value) + data[start + 4 :]


def _mutate_json(data: bytes, random: Random) -> bytes:
    if data[:1] not in b'{["':
        raise ValueError("not JSON that has parts")
    marker = "a value to replace"
    value = _change_value(json.loads(data), random, lambda: marker, _mutate_text)
    return json.dumps(value).replace(f'"{marker}"', random.choice(LITERALS)).encode("utf8")


def _mutate_msgpack(data: bytes, random: Random) -> bytes:
    if not data or not (data[0] >= 0x80):
        raise ValueError("not msgpack that has parts")
    value = srsly.msgpack_loads(data)
    if not isinstance(value, dict | list):
        raise ValueError("not msgpack that has parts")
    changed: bytes = srsly.msgpack_dumps(_change_value(value, random, lambda: random.choice(VALUES), _mutate_text))
    return changed


def _mutate_text(text: str | bytes, random: Random) -> str | bytes:
    """Damage a text or bytes inside a value, which may be of a format themselves."""
    if isinstance(text, bytes):
        return _mutate_once(text, random)
    return _mutate_once(text.encode("utf8", "surrogatepass"), random).decode("utf8", "replace")


def _change_value(value: Any, random: Random, replace: Callable[[], Any], mutate_text: Callable[..., Any]) -> Any:
    """Change a part of a nested value: replace, drop, repeat or rename it, or damage its text."""
    if isinstance(value, dict) and value and random.random() < 0.95:
        key, action = random.choice(list(value)), random.random()
        rest = {name: other for name, other in value.items() if name != key}
        if action < 0.1:
            return rest
        if action < 0.2:
            return {**value, random.choice(["x", "", f"{key}2"]): random.choice([value[key], replace()])}
        return {**value, key: _change_value(value[key], random, replace, mutate_text)}
    if isinstance(value, list) and value and random.random() < 0.9:
        i, action = random.randrange(len(value)), random.random()
        if action < 0.1:
            return value[:i] + value[i + 1 :]
        if action < 0.2:
            return value[:i] + [value[i]] * random.choice([2, 100]) + value[i + 1 :]
        return [*value[:i], _change_value(value[i], random, replace, mutate_text), *value[i + 1 :]]
    if isinstance(value, str | bytes) and len(value) > 20 and random.random() < 0.8:
        return mutate_text(value, random)
    if isinstance(value, int) and not isinstance(value, bool) and random.random() < 0.3:
        return value + random.choice([-1, 1, 2, -value * 2])
    return replace()
