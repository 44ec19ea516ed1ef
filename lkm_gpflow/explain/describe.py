"""Kernels in words.

A component is described by sentences.  Each is chosen from a table of rules, `RULES`: the first
rule of a slot that applies to the facts of a kernel gives its words.  To change the wording or the
language, change the words; to say something new, add a line.  The slots follow the
reports of Lloyd et al. (2014) and of the paper (Tong and Choi 2019, section 6.3).  A base kernel
that a user registers brings words of its own (`kernels.Words`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..kernels.grammar import Product, Words
from .facts import Facts
from .wording import Timeline, with_article

_SINUSOID = 1.5
"""From this lengthscale on the first harmonic has nine tenths of the variance of PER."""


@dataclass(frozen=True)
class Rule:
    """Words, and when they apply."""

    words: str  # may name facts (see `_FACT_WORDS`) and other slots in braces
    # Asked of the facts; the default is always.
    applies: Callable[[Facts], bool] = field(default=lambda facts: True)


# fmt: off
RULES: Mapping[str, tuple[Rule, ...]] = {
    "smooth": (
        Rule("very smooth", lambda f: f.lengthscale > 0.5 * f.timeline.span),
        Rule("rapidly varying but smooth", lambda f: f.lengthscale < f.timeline.span / 200.0),
        Rule("smooth"),
    ),
    "during": (
        Rule(" from {since} until {until}", lambda f: f.has("FROM") and f.has("UNTIL")),
        Rule("", lambda f: f.is_shift),
        Rule(" until {until}", lambda f: f.has("UNTIL")),
        Rule(" from {since} on", lambda f: f.has("FROM")),
        Rule(""),
    ),
    "window": (
        Rule("It is present from about {since} until about {until}{gradual}.", lambda f: f.has("FROM") and f.has("UNTIL")),
        Rule("", lambda f: f.is_shift),
        Rule("It is present until about {until}{gradual}.", lambda f: f.has("UNTIL")),
        Rule("It is present from about {since} on{gradual}.", lambda f: f.has("FROM")),
    ),
    "gradual": (
        Rule(", fading in within {fade_in} and out within {fade_out}", lambda f: f.fades("FROM") and f.fades("UNTIL")),
        Rule(", fading in within {fade_in}", lambda f: f.fades("FROM")),
        Rule(", fading out within {fade_out}", lambda f: f.fades("UNTIL")),
        Rule(""),
    ),
    "varying": (
        Rule(" but with varying amplitude", lambda f: f.degree > 0),
        Rule(" but rough, like a random walk", lambda f: f.is_rough),
        Rule(""),
    ),
    "polynomial": (
        Rule("quadratic", lambda f: f.degree == 2),
        Rule("cubic", lambda f: f.degree == 3),
        Rule("polynomial"),
    ),
    "first": (
        Rule("{own_sentence}", lambda f: f.words is not None),
        Rule("This component is {is}."),
    ),
    "times": (
        Rule("It is multiplied by {rest}.", lambda f: f.words is not None and f.rest is not None),
    ),
    "is": (
        Rule("a function with the kernel {formula}", lambda f: f.is_foreign),
        Rule("uncorrelated noise", lambda f: f.has("WN")),
        Rule("a random walk that returns to its mean: half of any deviation is gone after {half_life}", lambda f: f.has("OU") and not f.has("PER")),
        Rule("a function that would repeat itself after {period} if it did not change sooner", lambda f: f.never_repeats),
        Rule("approximately periodic with a period of {period}{varying}", lambda f: f.has("PER") and f.has("SE")),
        Rule("periodic with a period of {period}{varying}", lambda f: f.has("PER")),
        Rule("a rough function, like a random walk that forgets its past within about {two_lengthscales}", lambda f: f.has("SE") and f.is_rough),
        Rule("a {smooth} function with a typical lengthscale of {lengthscale}{varying}", lambda f: f.has("SE")),
        Rule("a random walk", lambda f: f.has("RW")),
        Rule("a random walk with next to no momentum", lambda f: f.memory < f.timeline.step),
        Rule("a random walk with momentum, which keeps its direction for about {memory}", lambda f: f.has("IOU")),
        Rule("a linear function", lambda f: f.degree == 1),
        Rule("a {polynomial} function", lambda f: f.degree > 1),
        Rule("a level of its own", lambda f: f.is_shift and f.has("FROM") and f.has("UNTIL")),
        Rule("a shift of level around {shift}, within {fade_shift}", lambda f: f.is_shift and f.fades("FROM", "UNTIL")),
        Rule("a shift of level around {shift}", lambda f: f.is_shift),
        Rule("constant"),
    ),
    "modulation": (
        Rule("It is modulated by a periodic function with a period of {second_period}.", lambda f: f.is_modulated),
    ),
    "amplitude": (
        Rule("", lambda f: f.is_foreign or f.is_polynomial),
        Rule("The {what} changes like a {polynomial} function of time.", lambda f: f.degree > 1),
        Rule("The {what} increases linearly.", lambda f: f.degree == 1 and f.location <= f.timeline.start),
        Rule("The {what} decreases linearly.", lambda f: f.degree == 1 and f.location >= f.timeline.end),
        Rule("The {what} increases linearly away from {location}.", lambda f: f.degree == 1),
        Rule("The {what} drifts like a random walk.", lambda f: f.is_rough and f.has("SE", "PER")),
        Rule("The {what} drifts like a random walk with momentum.", lambda f: f.has("IOU") and f.has("SE", "PER")),
        Rule("The {what} wanders, and returns to its mean: half of any deviation is gone after {half_life}.", lambda f: f.has("OU") and f.has("PER")),
    ),
    "what": (
        Rule("standard deviation of the noise", lambda f: f.has("WN")),
        Rule("amplitude of the function"),
    ),
    "shape": (
        Rule("", lambda f: f.is_foreign or not f.has("PER")),
        Rule("The shape of this function within each period resembles a sinusoid.", lambda f: f.shape >= _SINUSOID),
        Rule("The shape of this function within each period has a typical lengthscale of {shape_lengthscale}, which is below the step of the data ({step}): the data cannot resolve it.", lambda f: f.shape_lengthscale < f.timeline.step),
        Rule("The shape of this function within each period has a typical lengthscale of {shape_lengthscale}."),
    ),
    "change": (
        Rule("", lambda f: f.is_foreign or not (f.has("PER") and f.has("SE"))),
        Rule("Its shape hardly changes over the data.", lambda f: f.lengthscale > f.timeline.span),
        Rule("Its shape changes within less than a period (typical lengthscale {lengthscale}), so that it does not look periodic for long.", lambda f: f.lengthscale < f.period),
        Rule("Its shape changes smoothly from period to period, with a typical lengthscale of {lengthscale}."),
    ),
    "unseen": (
        Rule("The period is longer than the data: no repetition has been seen.", lambda f: f.period > f.timeline.span),
        Rule("The period is longer than half of the data: it was seen less than twice, and may be a single event, such as a shift of level. A search with the base CP among its bases can tell.", lambda f: f.is_seen_once),
        Rule("The period is shorter than two steps of the data ({step} each): it may be the echo of another one.", lambda f: f.period < 2.0 * f.timeline.step),
        Rule("The lengthscale is below the step of the data ({step}): it can hardly be told from noise.", lambda f: not f.has("PER") and f.lengthscale < f.timeline.step),
    ),
    "beyond": (
        Rule("Beyond the data it is no longer there.", lambda f: f.words is not None and f.has("UNTIL")),
        Rule("{own_beyond}", lambda f: f.words is not None and f.rest is None),
        Rule("", lambda f: f.is_foreign),
        Rule("Beyond the data the level stays.", lambda f: f.is_shift and not (f.has("FROM") and f.has("UNTIL"))),
        Rule("Beyond the data it is no longer there.", lambda f: f.has("UNTIL")),
        Rule("Beyond the data it cannot be predicted.", lambda f: f.has("WN")),
        Rule("Beyond the data it fades to the average after about {two_lengthscales}.", lambda f: f.never_repeats),
        Rule("If the period is right, it repeats beyond the data.", lambda f: f.is_seen_once),
        Rule("Beyond the data it keeps repeating, and fades: its size halves in {half_life}.", lambda f: f.has("PER") and f.has("OU")),
        Rule("Beyond the data it keeps repeating, and fades to the average after about {two_lengthscales}.", lambda f: f.has("PER") and f.has("SE")),
        Rule("Beyond the data it keeps repeating, and its amplitude changes as before.", lambda f: f.has("PER") and f.degree > 0),
        Rule("Beyond the data it keeps repeating.", lambda f: f.has("PER")),
        Rule("Beyond the data it returns to the average.", lambda f: f.has("OU")),
        Rule("Beyond the data it fades to the average after about {two_lengthscales}.", lambda f: f.has("SE")),
        Rule("Beyond the data it stays at its last value, with growing uncertainty.", lambda f: f.has("RW") or f.memory < f.timeline.step),
        Rule("Beyond the data it keeps its last direction for about {memory} and then levels off, with growing uncertainty.", lambda f: f.has("IOU")),
        Rule("Beyond the data it continues in a straight line.", lambda f: f.degree == 1),
        Rule("Beyond the data it continues along its curve.", lambda f: f.degree > 1),
        Rule("Beyond the data it keeps its value."),
    ),
    "cycle": (
        Rule("cycle of {period}{seen}", lambda f: f.timeline.origin is None),
        Rule("{period_adjective} cycle{seen}"),
    ),
    "seen": (
        Rule(" seen less than twice", lambda f: f.is_seen_once),
        Rule(""),
    ),
    "title": (
        Rule("{own_title}, multiplied by {rest}", lambda f: f.words is not None and f.rest is not None),
        Rule("{own_title}", lambda f: f.words is not None),
        Rule("pattern of the kernel {structure}", lambda f: f.is_foreign),
        Rule("noise of changing size", lambda f: f.has("WN") and f.has("LIN", "RW", "IOU")),
        Rule("uncorrelated noise", lambda f: f.has("WN")),
        Rule("short-lived {cycle}", lambda f: f.never_repeats),
        Rule("{cycle} of changing height", lambda f: f.has("PER") and f.has("LIN", "RW", "IOU", "OU")),
        Rule("approximate {cycle}", lambda f: f.has("PER") and f.has("SE")),
        Rule("{cycle}", lambda f: f.has("PER")),
        Rule("walk that returns to its mean", lambda f: f.has("OU")),
        Rule("rough changes over {lengthscale}", lambda f: f.has("SE") and f.is_rough),
        Rule("smooth changes over {lengthscale}", lambda f: f.is_brisk),
        Rule("slow drift over {lengthscale}", lambda f: f.has("SE")),
        Rule("random walk", lambda f: f.has("RW") or f.memory < f.timeline.step),
        Rule("random walk with momentum", lambda f: f.has("IOU")),
        Rule("straight line", lambda f: f.degree == 1),
        Rule("{polynomial} curve", lambda f: f.degree > 1),
        Rule("level", lambda f: f.is_shift and f.has("FROM") and f.has("UNTIL")),
        Rule("shift of level around {shift}", lambda f: f.is_shift),
        Rule("constant level"),
    ),
    "short": (
        Rule("{own_short}, multiplied by {rest}", lambda f: f.words is not None and f.rest is not None),
        Rule("{own_short}", lambda f: f.words is not None),
        Rule("{a_title}", lambda f: f.is_foreign),
        Rule("{title}", lambda f: f.has("WN") or (f.has("SE") and not f.has("PER", "OU") and (f.is_brisk or f.is_rough))),
        Rule("{a_title}"),
    ),
}
# fmt: on
"""Slots, each with its rules in the order in which they are asked."""

_SENTENCES = ("first", "times", "window", "modulation", "amplitude", "shape", "change", "unseen")


@dataclass(frozen=True)
class Description:
    """A component in words."""

    title: str  # its name for a reader: "1.4-year cycle"
    short: str  # A few words that stand after "share": "a 1.4-year cycle"
    sentences: tuple[str, ...]  # what it is: the first sentence, then what is special about it
    beyond: str  # what it does after the data end; empty if that is not known

    @property
    def text(self) -> str:
        """All of it."""
        return " ".join(filter(None, (*self.sentences, self.beyond)))


def describe(kernel: Product, timeline: Timeline) -> Description:
    """Describe a component kernel in words.

    The kernel has all its numbers (or a ValueError is raised), in the time of the timeline, as
    those of `Discovery.kernels`.
    """
    if not kernel.is_complete:
        raise ValueError(f"expected a kernel with all its numbers, got {kernel}")
    facts = Facts(kernel, timeline)
    during = say("during", facts)
    return Description(
        title=say("title", facts) + during,
        short=say("short", facts) + during,
        sentences=tuple(filter(None, (say(slot, facts) for slot in _SENTENCES))),
        beyond=say("beyond", facts),
    )


def say(slot: str, facts: Facts) -> str:
    """Return the words of the first rule of a slot that applies; nothing if none does."""
    words = (rule.words for rule in RULES[slot] if rule.applies(facts))
    return next(words, "").format_map(_Words(facts))


class _Words(dict[str, str]):
    """The words that rules may name: other slots, and facts, of which numbers are durations."""

    def __init__(self, facts: Facts) -> None:
        super().__init__()
        self._facts = facts

    def __missing__(self, name: str) -> str:
        if name in RULES:
            return say(name, self._facts)
        if name in _FACT_WORDS:
            return _FACT_WORDS[name](self._facts)
        return self._facts.timeline.duration(getattr(self._facts, name))


def _own(f: Facts) -> Words:
    """Return the words of a base kernel that brings some."""
    assert f.words is not None
    return f.words


def _rest(f: Facts) -> str:
    assert f.rest is not None
    return describe(f.rest, f.timeline).short


_FACT_WORDS: Mapping[str, Callable[[Facts], str]] = {
    "own_title": lambda f: _own(f).title.removeprefix("a ").removeprefix("an "),
    "own_short": lambda f: _own(f).title,
    "own_sentence": lambda f: _own(f).sentence,
    "own_beyond": lambda f: _own(f).beyond,
    "rest": _rest,
    "formula": lambda f: f"{f.kernel:.3g}",
    "structure": lambda f: str(f.kernel.structure),
    "second_period": lambda f: f.timeline.duration(f.periods[1]),
    "period_adjective": lambda f: f.timeline.adjective(f.period),
    "two_lengthscales": lambda f: f.timeline.duration(2.0 * f.lengthscale),
    "location": lambda f: f.timeline.date(f.location),
    "a_title": lambda f: with_article(say("title", f)),
    "since": lambda f: f.timeline.date(f.at("FROM")),
    "until": lambda f: f.timeline.date(f.at("UNTIL")),
    "shift": lambda f: f.timeline.date(f.at("FROM", "UNTIL")),
    "fade_in": lambda f: f.timeline.duration(f.fade("FROM")),
    "fade_out": lambda f: f.timeline.duration(f.fade("UNTIL")),
    "fade_shift": lambda f: f.timeline.duration(f.fade("FROM", "UNTIL")),
    "step": lambda f: f.timeline.duration(f.timeline.step),
}
