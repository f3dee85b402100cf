"""The table of methods. A method is five choices, and a new one a new line here: nothing else knows a method's name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from credro._names import ArgumentError, did_you_mean, one_of
from credro.members import (
    HEADS,
    RISKS,
    STARTS,
    STOPS,
    Choice,
    CVaR,
    End,
    Fresh,
    Gaussian,
    Head,
    Mean,
    Member,
    Risk,
    Softmax,
    Start,
    Stop,
    choose,
    with_options,
)
from credro.readouts import READOUTS, BoxReadOut, ReadOut

Kinds = dict[str, tuple[dict[str, type[Any]], type[Any]]]
TRAINING: Kinds = {"start": (STARTS, Start), "risk": (RISKS, Risk), "head": (HEADS, Head), "stop": (STOPS, Stop)}
"""The four choices that decide how members are trained: kinds by name, and what all of them are."""
CHOICES: Kinds = {**TRAINING, "readout": (READOUTS, ReadOut)}


@dataclass(frozen=True)
class Method:
    """Five independent choices. Each may be given as such, by its kind, or as ``config`` wrote it.

    ``Method(start="biased", risk=CVaR(delta_g=0.7))``. Networks of methods that agree in all but the read-out are the
    same, and trained once. name: under which results speak of it; made of the choices if not given.
    """

    start: Start = Fresh()  # noqa: RUF009 - choices are frozen
    risk: Risk = Mean()  # noqa: RUF009
    head: Head = Softmax()  # noqa: RUF009
    stop: Stop = End()  # noqa: RUF009
    readout: ReadOut = BoxReadOut()  # noqa: RUF009
    name: str = ""

    def __post_init__(self) -> None:
        """Understand what was given, and refuse what makes no sense."""
        for what, (kinds, base) in CHOICES.items():
            object.__setattr__(self, what, choose(what, kinds, getattr(self, what), base))
        if self.head.gives not in self.readout.takes:
            raise ArgumentError(
                "readout",
                f"read-out {self.readout.kind!r} reads {' or '.join(self.readout.takes)} of the members, and head "
                f"{self.head.kind!r} gives {self.head.gives}: take one of {', '.join(_readouts_for(self.head))}",
            )
        if self.start.biases and self.head.gives == "gaussians":
            raise ArgumentError(
                "start", f"start {self.start.kind!r} gives a member's belief to one class, and regression has none"
            )
        if not self.name:
            object.__setattr__(self, "name", _name_of(self))

    def member(self, i: int, members: int) -> Member:
        """What the choices come to for member ``i`` of ``members``."""
        if not 0 <= i < members:
            raise ArgumentError("i", f"i must be a member's number, 0 to {members - 1}, got {i}")
        parts = [getattr(self, what).member(i, members) for what in TRAINING]
        return Member(i, *parts)

    def config(self) -> dict[str, Any]:
        """What a run records of it."""
        return {"name": self.name, **{what: getattr(self, what).config() for what in CHOICES}}

    def training(self) -> dict[str, Any]:
        """The choices that decide how members are trained: equal for methods that share their networks."""
        return {what: getattr(self, what).config() for what in TRAINING}

    @property
    def _does_regression(self) -> bool:
        return self.head == Softmax() and "gaussians" in self.readout.takes and not self.start.biases

    def for_regression(self) -> Method:
        """The same method for targets that are real numbers: a Gaussian head in the place of the softmax."""
        if self.head.gives == "gaussians":
            return self
        if not self._does_regression:
            raise ArgumentError(
                "method",
                f"method {self.name!r} is for classes; these do regression: {', '.join(for_regression())}",
            )
        return replace(self, head=Gaussian())


def _readouts_for(head: Head) -> list[str]:
    return [kind for kind, readout in READOUTS.items() if head.gives in readout.takes]


def _name_of(method: Method) -> str:
    """That of the table where the choices are of the same kinds, else the kinds that are not the usual ones."""
    kinds = {what: getattr(method, what).kind for what in CHOICES}
    for name, entry in globals().get("METHODS", {}).items():  # empty while the table itself is made
        if {what: getattr(entry.method, what).kind for what in CHOICES} == kinds:
            return str(name)
    usual: dict[str, Any] = {f.name: f.default for f in fields(Method) if f.name in CHOICES}
    return "+".join(f"{w}={k}" for w, k in kinds.items() if k != usual[w].kind) or "method"


_of: Any = Method  # choices by their kinds, which it understands


@dataclass(frozen=True)
class Entry:
    """A line of the table. label: as tables and figures write it; title: in words. colour: in every figure."""

    method: Method
    label: str
    title: str
    reference: str
    colour: str


METHODS: dict[str, Entry] = {
    # Colours: Okabe and Ito's palette and two more, which colour-blind readers can tell apart.
    "de": Entry(_of(readout="mean"), "DE", "Deep ensemble", "Lakshminarayanan et al., 2017", "#999999"),
    "crewra": Entry(_of(readout="box"), "CreWra", "Credal wrapper", "Wang et al., 2025", "#56B4E9"),
    "creens": Entry(_of(readout="nearest_hull"), "CreEns", "Credal ensembling", "Nguyen et al., 2025", "#009E73"),
    "en-dro": Entry(
        _of(risk="cvar", readout="mean"), "EN-DRO", "CreDRO's members without a set", "Wang et al., 2026", "#E69F00"
    ),
    "credro": Entry(_of(risk="cvar", readout="box"), "CreDRO", "CreDRO", "Wang et al., 2026", "#D55E00"),
    "credro-hull": Entry(
        _of(risk="cvar", readout="hull"), "CreDRO (hull)", "CreDRO with a convex hull", "Wang et al., 2026", "#CC79A7"
    ),
    "creram": Entry(
        _of(risk="random_subset", readout="box"), "CreRAM", "Random subsets of batches", "Wang et al., 2026", "#F0E442"
    ),
    "crerl": Entry(
        _of(start="biased", stop="relative_likelihood", readout="box"),
        *("CreRL", "Credal relative likelihood", "Löhr et al., 2025", "#0072B2"),
    ),
    "crede": Entry(
        _of(risk=CVaR(delta=0.5), head="interval", readout="averaged_box"),
        *("CreDE", "Credal deep ensemble", "Wang et al., 2024", "#8C6D31"),
    ),
    "crebnn": Entry(
        _of(head="variational", readout="hull"), "CreBNN", "Credal Bayesian network", "Caprio et al., 2024", "#5E4FA2"
    ),
}
OTHER_COLOUR = "#000000"
"""Of a method that is not in the table."""


def options(method: str | Method) -> dict[str, Any]:
    """The method's options and their values: by name, or as ``stop.alpha`` where two choices have one so called."""
    made = _entry(method).method if isinstance(method, str) else method
    owners = _owners(made)
    named = {(key if len(owners[key]) == 1 else f"{w}.{key}"): (w, key) for key in owners for w in owners[key]}
    return {name: getattr(getattr(made, what), key) for name, (what, key) in named.items()}


def make(name: str, **given: Any) -> Method:
    """The method called ``name``, changed: ``make("credro", delta_g=0.7)``, ``make("credro", start="biased")``.

    given: a choice by its name (start, risk, head, stop, readout), or an option of one, ``**{"head.norm": "batch"}``
    where several have it. A method with another kind of choice gets another name, ``credro+start=biased``.
    """
    table = _entry(name).method
    replaced = {
        what: choose(what, CHOICES[what][0], given[what], CHOICES[what][1]) for what in CHOICES if what in given
    }
    method = replace(table, **replaced, name="-") if replaced else table
    for key, value in given.items():
        if key not in CHOICES:
            what, option = _owner(method, name, key)
            choice = with_options(getattr(method, what), {option: value}, what)
            method = replace(method, **{what: choice}, name="-")
    changed = [w for w in CHOICES if getattr(method, w).kind != getattr(table, w).kind]
    return replace(method, name="+".join([name, *(f"{w}={getattr(method, w).kind}" for w in changed)]))


def known_methods(trained: Method) -> list[str]:
    """Names of the methods that can read networks trained as ``trained`` was, whatever its options; its own too."""
    kinds = _kinds(trained)
    table = [name for name, entry in METHODS.items() if _kinds(entry.method) == kinds]
    if trained.head.gives == "gaussians":
        table = [name for name in for_regression() if _kinds(METHODS[name].method.for_regression()) == kinds]
    return table if trained.name in table else [trained.name, *table]


def as_read(trained: Method, method: str | Method) -> Method:
    """The method ``method`` on networks that ``trained`` has trained: their training, its read-out."""
    if isinstance(method, Method):
        if method.training() != trained.training():
            raise ArgumentError(
                "method",
                f"method {method.name!r} needs members trained by {_in_words(method)}, these were by "
                f"{_in_words(trained)}",
            )
        return method
    if method == trained.name:
        return trained
    if method not in known_methods(trained):
        _entry(method)
        raise ArgumentError(
            "method",
            f"method {method!r} needs members trained by {_in_words(METHODS[method].method)}, these were by "
            f"{_in_words(trained)}. These read them: {', '.join(known_methods(trained))}",
        )
    return replace(trained, readout=METHODS[method].method.readout, name=method)


def method_of(config: Mapping[str, Any]) -> Method:
    """The method that ``Method.config`` wrote."""
    for what, (kinds, _) in CHOICES.items():
        kind = config[what].get("kind")
        if kind not in kinds:
            raise ArgumentError(
                "method",
                f"the run was trained by method {config['name']!r}, whose {what} {kind!r} is none of credro's own: "
                f"give it as method=",
            )
    return Method(**{what: config[what] for what in CHOICES}, name=config["name"])


def of_probabilities() -> list[str]:
    """Names of the methods that read the probabilities of any ordinary ensemble, whoever trained it."""
    usual = _kinds(Method())
    return [name for name, entry in METHODS.items() if _kinds(entry.method) == usual]


def for_regression() -> list[str]:
    """Names of the methods that can also do regression."""
    return [name for name, entry in METHODS.items() if entry.method._does_regression]


def label(name: str) -> str:
    """A method's name as tables and figures write it: ``CreDRO``; of a changed one ``CreDRO, start=biased``."""
    base, *changes = name.split("+")
    return ", ".join([METHODS[base].label if base in METHODS else base, *changes])


def colour(name: str) -> str:
    """A method's colour in every figure."""
    return METHODS[name].colour if name in METHODS else OTHER_COLOUR


def _entry(name: str) -> Entry:
    return METHODS[one_of("method", name, METHODS)]


def _kinds(method: Method) -> tuple[str, ...]:
    return tuple(getattr(method, what).kind for what in TRAINING)


def _owners(method: Method) -> dict[str, list[str]]:
    """Which of the five choices have an option of that name."""
    owners: dict[str, list[str]] = {}
    for what in CHOICES:
        for key in getattr(method, what).options():
            owners.setdefault(key, []).append(what)
    return owners


def _owner(method: Method, name: str, key: str) -> tuple[str, str]:
    """Whose option ``key`` is, and its own name: ``head.norm`` or ``norm``."""
    owners = _owners(method)
    what, dot, option = key.partition(".")
    if dot and what in CHOICES:
        return what, option
    found = owners.get(key, [])
    if len(found) > 1:
        named = " or ".join(f"{w}.{key}" for w in found)
        raise ArgumentError(key, f"method {name!r} has more than one option {key!r}: say {named}")
    if not found:
        known = {k: getattr(getattr(method, w[0]), k) for k, w in owners.items()}
        allowed = ", ".join(f"{k}={v}" for k, v in known.items()) or "none"
        raise ArgumentError(
            key,
            f"method {name!r} has no option {key!r}{did_you_mean(key, [*CHOICES, *known])}; its choices are "
            f"{', '.join(CHOICES)}, their options and defaults: {allowed}",
        )
    return found[0], key


def _in_words(method: Method) -> str:
    """``risk cvar (delta_g=0.7), head softmax``: choices that are not the usual ones, and options that are not."""
    parts = []
    for what in TRAINING:
        choice: Choice = getattr(method, what)
        usual = type(choice)().options()
        changed = ", ".join(f"{k}={v}" for k, v in choice.options().items() if v != usual[k])
        parts.append(f"{what} {choice.kind}" + (f" ({changed})" if changed else ""))
    return ", ".join(parts)
