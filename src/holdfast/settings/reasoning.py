"""Settings of symbolic closure (C8): how far it looks, what it derives, and by which rules."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.errors import SettingsError, shown
from holdfast.settings.fields import setting, within

_COUNTS = ("depth", "max_seeds", "max_derived", "max_proofs", "max_focused", "fan_out", "max_facts")


@dataclass(frozen=True, slots=True)
class SymbolicSettings:
    """Rules over facts, and the proofs they give (C8)."""

    depth: int = setting(3, "rounds of rules, and how many facts away from a seed is looked")
    max_seeds: int = setting(8, "most symbols and most facts that a question starts from")
    max_derived: int = setting(64, "most facts derived for one question")
    max_proofs: int = setting(32, "most proofs that are ranked")
    max_focused: int = setting(12, "most proofs that are shown")
    min_score: float = setting(0.15, "a proof with a lower score is not shown")
    step_penalty: float = setting(0.25, "p of 1/(1 + p·steps): what each fact and rule of a proof costs")
    goal_bonus: float = setting(1.15, "factor of a proof whose ends hold a word of the question")
    seed_bonus: float = setting(1.10, "factor of a proof that rests on a seed")
    preferred: tuple[str, ...] = setting(
        ("relevant_for", "has_capability", "depends_on", "causes"), "relations that are shown before others"
    )
    # Whoever has more facts than this is busy: the rest of them count where their other end is known (the hub rule).
    fan_out: int = setting(256, "most facts read of one symbol, relation and side, apart from those between symbols")
    max_facts: int = setting(4096, "most facts read for one question")
    # What a unit states in the question's own words is found by them; as a proof of nothing new it only displaces
    # better hits: without, recall_all@10 of `thinking` on two-hop passages is .737 instead of .460.
    base_facts: bool = setting(default=False, doc="find a unit by a fact that it states, when nothing is derived")
    further_rules: bool = setting(default=True, doc="rules of ours over instance_of, part_of and has_part")
    rules: tuple[str, ...] = setting((), "rules of yours, as `x located_in y, y part_of z -> x located_in z : 0.9`")
    relations: tuple[str, ...] = setting((), "further relations that a file of units may use")
    functional: tuple[str, ...] = setting((), "relations with one object at a time; facts that disagree are flagged")

    def __post_init__(self) -> None:
        for name in _COUNTS:
            within(f"symbolic.{name}", getattr(self, name), 1)
        within("symbolic.min_score", self.min_score, 0.0)
        within("symbolic.step_penalty", self.step_penalty, 0.0)
        within("symbolic.goal_bonus", self.goal_bonus, 1.0)
        within("symbolic.seed_bonus", self.seed_bonus, 1.0)
        for name in ("preferred", "relations", "functional"):
            for relation in getattr(self, name):
                if not relation or relation.split() != [relation]:
                    raise SettingsError(
                        f"symbolic.{name} names {shown(relation)}; a relation is one word, as in born_in"
                    )
