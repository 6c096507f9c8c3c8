"""Assembly (C16): a plan, then what was recalled in the room that it leaves."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.assembly.context import Context, Recalled
from holdfast.assembly.excerpt import SentenceScore
from holdfast.assembly.packing import Packer
from holdfast.assembly.plan import Plan, Request, plan_tail


def assemble(
    request: Request, projection: Sequence[Recalled], sentence_score: SentenceScore | None = None
) -> Context:
    """Do both steps in one, for a projection that was made without knowing the tail."""
    return fill(plan_tail(request), projection, sentence_score)


def fill(plan: Plan, projection: Sequence[Recalled], sentence_score: SentenceScore | None = None) -> Context:
    """Put what was recalled into the room that the plan leaves, in its order.

    A degraded plan takes nothing more, and a unit that is in the context already is not shown twice.
    `sentence_score` rates sentences for the packing `excerpt`; `excerpt.term_overlap` makes one from a question.

    Raises:
        InputError: the counter or the scorer misbehaves, or `excerpt` has no scorer.
    """
    packer = Packer(plan.text, plan.tokens, plan.budget, plan.counter, plan.settings, sentence_score)
    known, fresh = set(plan.tail_ids), []
    for recalled in projection:
        if recalled.unit.id in known:
            packer.leave(recalled, "shown")
        elif plan.degraded:
            packer.leave(recalled, "degraded")
        else:
            fresh.append(recalled)
        known.add(recalled.unit.id)
    section = packer.pack(fresh)
    left_out = (*plan.left_out, *packer.left_out)
    return Context((*plan.sections, section), packer.used, plan.budget, plan.degraded, plan.warnings, left_out)
