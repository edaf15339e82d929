"""Labels known by a hash of their text alone, as CatBoost keeps them.

CatBoost stores no category's text: it stores the low 32 bits of CityHash64 (version 1) of it. To
find out whether a label is the one that a test asks for, its text is hashed too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_WORD = (1 << 64) - 1
_K0, _K1, _K2, _K3 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F, 0xC949D7C7509E6557
_MIX = 0x9DDFEA08EB382D69


def label_hash(text: str) -> int:
    """The low 32 bits of the text's CityHash64, as a signed integer.

    Examples
    --------
    >>> label_hash("1")
    1121341681
    """
    low = _city(text.encode("utf-8", "surrogateescape")) & 0xFFFFFFFF
    return low - (1 << 32) if low >> 31 else low


def _turn(x: int, by: int) -> int:
    """x rotated right."""
    x &= _WORD
    return (x >> by | x << (64 - by)) & _WORD if by else x


def _fold(x: int) -> int:
    x &= _WORD
    return x ^ x >> 47


def _pair(u: int, v: int) -> int:
    """128 bits to 64."""
    a = _fold(((u ^ v) & _WORD) * _MIX)
    return _fold(((v & _WORD) ^ a) * _MIX) * _MIX & _WORD


def _city(s: bytes) -> int:
    n = len(s)

    def word(at: int, size: int = 8) -> int:
        return int.from_bytes(s[at : at + size], "little")

    if n > 64:
        return _city_long(s, word)
    if n > 32:
        v, v2 = _half(word(0) + (n + word(n - 16)) * _K0, word(8), word(16), word(24))
        w, w2 = _half(word(16) + word(n - 32), word(n - 24), word(n - 16), word(n - 8))
        return _fold(_fold((v + w2) * _K2 + (w + v2) * _K0) * _K0 + v2) * _K2 & _WORD
    if n > 16:
        a, b, c, d = word(0) * _K1, word(8), word(n - 8) * _K2, word(n - 16) * _K0
        return _pair(_turn(a - b, 43) + _turn(c, 30) + d, a + _turn(b ^ _K3, 20) - c + n)
    if n > 8:
        last = word(n - 8)
        return _pair(word(0), _turn(last + n, n)) ^ last
    if n >= 4:
        return _pair(n + (word(0, 4) << 3), word(n - 4, 4))
    if n:
        return _fold((s[0] + (s[n >> 1] << 8)) * _K2 ^ (n + (s[n - 1] << 2)) * _K3) * _K2 & _WORD
    return _K2


def _half(a: int, first: int, second: int, z: int) -> tuple[int, int]:
    """One half of a text of 33 to 64 bytes."""
    b, c = _turn(a + z, 52), _turn(a, 37)
    a += first
    c += _turn(a, 7)
    a += second
    return a + z & _WORD, b + _turn(a, 31) + c & _WORD


def _city_long(s: bytes, word: Callable[..., int]) -> int:
    """A text of more than 64 bytes, in blocks of 64, the last bytes first."""
    n = len(s)

    def block(at: int, a: int, b: int) -> tuple[int, int]:
        a += word(at)
        b = _turn(b + a + word(at + 24), 21)
        c = a
        a += word(at + 8) + word(at + 16)
        return a + word(at + 24) & _WORD, b + _turn(a, 44) + c & _WORD

    x, y, z = word(0), word(n - 16) ^ _K1, word(n - 56) ^ _K0
    v = block(n - 64, n, y)
    w = block(n - 32, n * _K1, _K0)
    z = z + _fold(v[1]) * _K1 & _WORD
    x, y = _turn(z + x, 39) * _K1, _turn(y, 33) * _K1
    for at in range(0, (n - 1) // 64 * 64, 64):
        x = _turn(x + y + v[0] + word(at + 16), 37) * _K1 & _WORD
        y = _turn(y + v[1] + word(at + 48), 42) * _K1 & _WORD
        x, y, z = x ^ w[1], y ^ v[0], _turn(z ^ w[0], 33)
        v = block(at, v[1] * _K1, x + w[0])
        w = block(at + 32, z + w[1], y)
        z, x = x, z
    return _pair(_pair(v[0], w[0]) + _fold(y) * _K1 + z, _pair(v[1], w[1]) + x)
