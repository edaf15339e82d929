"""An attribute that is made when it is first asked for, and kept by its object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

Made = TypeVar("Made")


class made_once(Generic[Made]):
    """Declares an attribute that is made on first use and kept by its object until that goes.

    As `functools.cached_property`, without its lock: up to Python 3.11 one lock serves all objects
    of a class, and a process that is forked while a thread holds it would wait for ever. Threads
    that come first at the same time each make the attribute, and all are given the same one.

    Examples
    --------
    >>> class Circle:
    ...     def __init__(self, radius):
    ...         self.radius = radius
    ...
    ...     @made_once
    ...     def area(self):
    ...         print("computing")
    ...         return 3 * self.radius**2
    >>> circle = Circle(2)
    >>> circle.area + circle.area
    computing
    24
    """

    def __init__(self, make: Callable[[Any], Made]) -> None:
        self.make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> Made: ...

    def __get__(self, instance: object, owner: type) -> Made | Self:
        if instance is None:
            return self
        made: Made = vars(instance).setdefault(self.name, self.make(instance))
        return made
