# SPDX-License-Identifier: Apache-2.0
"""The base classes of the generated types, and how their values are read from JSON and written to it."""

import dataclasses
import datetime
import enum
import typing

T = typing.TypeVar("T")
R = typing.TypeVar("R")

# A number of Varlink's is one of 64 bits (https://varlink.org/Interface-Definition).
_LARGEST = 2**63 - 1


class Malformed(ValueError):
    """A value is not as the interface declares it."""


class Enumeration(str, enum.Enum):
    """One of several words. It equals the word of the interface, and prints as it."""

    def __str__(self) -> str:
        return str(self.value)

    @property
    def is_known(self) -> bool:
        """Whether this version of the library knows the word."""
        return self._name_ in type(self).__members__


class OpenEnumeration(Enumeration):
    """An enumeration that later agents may add to. An unknown word is a value of it, too: compare with ``==``."""

    @classmethod
    def _missing_(cls, value: object) -> typing.Any:
        if not isinstance(value, str):
            return None
        # Not stored, so an agent that sends many words does not make memory grow.
        word = str.__new__(cls, value)
        word._name_ = word._value_ = value
        return word


class Codec:
    """How one kind of value is read and written."""

    def read(self, value: object, where: str) -> object:
        """The value for a value of JSON.

        :param where: the field, for the error.
        :raises Malformed: if it is of another kind."""
        raise NotImplementedError

    def write(self, value: typing.Any) -> object:
        """The value of JSON for a value.

        :raises TypeError: if it is of another type."""
        return value


class _Plain(Codec):
    def __init__(self, *types: type) -> None:
        self._types = types

    def read(self, value: object, where: str) -> object:
        # Not isinstance: True is an int in Python.
        if type(value) not in self._types:
            raise Malformed(f"{where} is {value!r:.60}, where {self._types[0].__name__} was expected")
        if type(value) is int and not -_LARGEST <= value <= _LARGEST:
            raise Malformed(f"{where} is out of range")
        return value

    def write(self, value: typing.Any) -> object:
        plain = value.value if isinstance(value, enum.Enum) else value
        if type(plain) not in self._types:
            raise TypeError(f"{value!r:.60} where {self._types[0].__name__} was expected")
        return plain


class _Time(Codec):
    def read(self, value: object, where: str) -> object:
        text = TEXT.read(value, where)
        try:
            # Python before 3.11 does not read the Z.
            time = datetime.datetime.fromisoformat(str(text).replace("Z", "+00:00"))
        except ValueError:
            time = None
        if time is None or time.tzinfo is None:
            raise Malformed(f"{where} is {text!r:.60}, where a time of RFC 3339 was expected")
        return time

    def write(self, value: typing.Any) -> object:
        if not isinstance(value, datetime.datetime):
            raise TypeError(f"{value!r:.60} where a datetime was expected")
        utc = value.astimezone(datetime.timezone.utc)
        return utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Duration(Codec):
    def read(self, value: object, where: str) -> object:
        number = INTEGER.read(value, where)
        try:
            return datetime.timedelta(milliseconds=typing.cast(int, number))
        except OverflowError:
            raise Malformed(f"{where} is out of range") from None

    def write(self, value: typing.Any) -> object:
        if not isinstance(value, datetime.timedelta):
            raise TypeError(f"{value!r:.60} where a timedelta was expected")
        return value // datetime.timedelta(milliseconds=1)


class Choice(Codec):
    """A word of an enumeration."""

    def __init__(self, kind: typing.Type[Enumeration]) -> None:
        self._kind = kind

    def read(self, value: object, where: str) -> object:
        try:
            return self._kind(TEXT.read(value, where))
        except ValueError:
            raise Malformed(f"{where} is {value!r:.60}, which is not a {self._kind.__name__}") from None

    def write(self, value: typing.Any) -> object:
        return TEXT.write(value)


class Nested(Codec):
    """An object."""

    def __init__(self, kind: typing.Type["Value"]) -> None:
        self._kind = kind

    def read(self, value: object, where: str) -> object:
        return self._kind(**read_fields(self._kind._wire, value, where))

    def write(self, value: typing.Any) -> object:
        if not isinstance(value, self._kind):
            raise TypeError(f"{value!r:.60} where {self._kind.__name__} was expected")
        return write_fields(value)


class Array(Codec):
    """An array of values."""

    def __init__(self, element: Codec) -> None:
        self._element = element

    def read(self, value: object, where: str) -> object:
        if not isinstance(value, list):
            raise Malformed(f"{where} is {value!r:.60}, where an array was expected")
        return tuple(self._element.read(each, f"{where}[{index}]") for index, each in enumerate(value))

    def write(self, value: typing.Any) -> object:
        # A str is a sequence, too, of its letters.
        if isinstance(value, str):
            raise TypeError(f"{value!r:.60} where several values were expected")
        return [self._element.write(each) for each in value]


FLAG = _Plain(bool)
INTEGER = _Plain(int)
NUMBER = _Plain(float, int)
TEXT = _Plain(str)
TIME = _Time()
DURATION = _Duration()


@dataclasses.dataclass(frozen=True)
class Field:
    """One field of an object: its name in Python, its name in JSON, its kind."""

    name: str
    key: str
    codec: Codec
    optional: bool = False


Fields = typing.Tuple[Field, ...]


def read_fields(fields: Fields, value: object, where: str) -> typing.Dict[str, typing.Any]:
    """The values of an object's fields, without fields that this library does not know.

    :raises Malformed: if one is missing, or of another type."""
    if not isinstance(value, dict):
        raise Malformed(f"{where} is {value!r:.60}, where an object was expected")
    found = {}
    for field in fields:
        each = value.get(field.key)
        if each is not None:
            found[field.name] = field.codec.read(each, f"{where}.{field.key}")
        elif not field.optional:
            raise Malformed(f"{where}.{field.key} is missing")
    return found


def write_fields(value: typing.Any) -> typing.Dict[str, object]:
    """An object as JSON. A field that is ``None`` is left out."""
    found = {}
    for field in value._wire:
        each = getattr(value, field.name)
        if each is not None:
            try:
                found[field.key] = field.codec.write(each)
            except TypeError as error:
                raise TypeError(f"{type(value).__name__}.{field.name}: {error}") from None
        elif not field.optional:
            raise TypeError(f"{type(value).__name__}.{field.name} is missing")
    return found


# Types that may hold a password.
_UNSHOWN = ("OpeningStep", "OpeningAnswer")


class Value:
    """An object of an interface."""

    _wire: typing.ClassVar[Fields] = ()

    def __repr__(self) -> str:
        if type(self).__name__ in _UNSHOWN:
            return f"{type(self).__name__}(…)"
        present = ((field.name, getattr(self, field.name)) for field in self._wire)
        return f"{type(self).__name__}({', '.join(f'{n}={v!r}' for n, v in present if v is not None)})"


@dataclasses.dataclass(frozen=True, repr=False)
class Nothing(Value):
    """The answer of a method that returns nothing."""


class Method(Value, typing.Generic[R]):
    """A method with the parameters of a call."""

    _method: typing.ClassVar[str]
    _reply: typing.ClassVar[typing.Type[Value]]


class StreamMethod(Method[R]):
    """A method that answers with a stream, with the parameters of a call."""


def read_reply(method: Method[R], parameters: object) -> R:
    """The answer to a call.

    :raises Malformed: if it is not as declared."""
    kind = method._reply
    return typing.cast(R, kind(**read_fields(kind._wire, parameters, kind.__name__)))


if typing.TYPE_CHECKING:
    from .errors import Refused

#: The class of an error, and what its interface says of it.
KnownError = typing.Tuple[typing.Type["Refused"], str]
