"""Find by words: fielded BM25 (C4). The store proposes, one kernel scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import bm25
from holdfast.retrieval.strategy import Proposals
from holdfast.settings import Settings
from holdfast.store.contract import Reading
from holdfast.store.queries import LexicalEvidence, LexicalQuery
from holdfast.types import FIELDS, Contribution, Deadline, QueryProfile, StrategyExplanation, StrategyScores

_TOPIC = FIELDS.index("topic")
# "See also E0303" mentions an error; the page of that name explains it. Of .5 to 1, this puts the page first.
_MENTIONED = 0.75


class LexicalStrategy:
    """BM25 over seven fields, with a boost for the roles the question's act prefers."""

    id = "lexical"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings.lexical
        self._weights = tuple(settings.lexical.weights[name] for name in FIELDS)

    def _query(self, query: QueryProfile) -> LexicalQuery:
        return LexicalQuery(
            terms=query.terms,
            weights=self._weights,
            k1=self._settings.k1,
            b=self._settings.b,
            boosted_roles=query.needed_roles,
            role_boost=self._settings.role_boost,
        )

    def propose(self, query: QueryProfile, reading: Reading, depth: int, deadline: Deadline) -> Proposals:
        """See `Strategy.propose`."""
        found = reading.propose(self._query(query), depth, deadline)
        return Proposals(found.ids, found.exhausted)

    def score(self, query: QueryProfile, reading: Reading, ids: Sequence[str]) -> StrategyScores:
        """See `Strategy.score`."""
        evidence = reading.evidence(self._query(query), ids)
        claims = StrategyScores.of(ids, relative=True, terms=len(query.terms))
        rows = claims.rows_of(evidence.ids)
        claims.raw[rows] = self._scores(query, evidence)
        claims.coverage[rows] = evidence.coverage
        claims.matched[rows] = evidence.matched
        claims.identified[rows] = _identify(query, evidence, reading)
        return claims

    def _scores(self, query: QueryProfile, evidence: LexicalEvidence) -> NDArray[np.float64]:
        boosted = [role in query.needed_roles for role in evidence.roles]
        return bm25.scores(
            evidence.tf,
            evidence.lengths,
            evidence.idfs,
            evidence.averages,
            np.array(self._weights, dtype=np.float64),
            np.where(boosted, self._settings.role_boost, 1.0),
            self._settings.k1,
            self._settings.b,
        )

    def explain(self, query: QueryProfile, reading: Reading, ids: Sequence[str]) -> dict[str, StrategyExplanation]:
        """See `Strategy.explain`: the raw score as the tree of C4, and the terms that matched."""
        evidence = reading.evidence(self._query(query), ids)
        found = {unit_id: StrategyExplanation(Contribution("bm25", 0.0), (self.id,)) for unit_id in ids}
        for row, unit_id in enumerate(evidence.ids):
            terms = [term for term, yes in zip(query.terms, evidence.matched[row].tolist(), strict=True) if yes]
            tree = self._explain_row(query, evidence, row)
            found[unit_id] = StrategyExplanation(tree, (self.id, *(f"matched: {term}" for term in terms)))
        return found

    def _explain_row(self, query: QueryProfile, evidence: LexicalEvidence, row: int) -> Contribution:
        """Return the tree of one score; what a term does not touch adds 0 and is left out."""
        fields: list[Contribution] = []
        for f, name in enumerate(FIELDS):
            parts = [
                self._explain_term(term, evidence, row, f, t)
                for t, term in enumerate(query.terms)
                if evidence.tf[row, f, t]
            ]
            if parts and self._weights[f]:
                words = Contribution.of("words", "sum", *parts)
                fields.append(
                    Contribution.of(f"field {name}", "product", Contribution("field weight", self._weights[f]), words)
                )
        boost = self._settings.role_boost if evidence.roles[row] in query.needed_roles else 1.0
        matches = Contribution.of("matches", "sum", *fields)
        return Contribution.of("bm25", "product", matches, Contribution("role boost", boost))

    def _explain_term(self, term: str, evidence: LexicalEvidence, row: int, f: int, t: int) -> Contribution:
        tf, length = float(evidence.tf[row, f, t]), float(evidence.lengths[row, f])
        average = float(evidence.averages[f])
        part = bm25.saturation(np.array([tf]), np.array([length]), average, self._settings.k1, self._settings.b)
        rarity = Contribution("idf", float(evidence.idfs[t]))
        return Contribution.of(f"term {term}", "product", rarity, Contribution("tf part", float(part[0])))


def _identify(query: QueryProfile, evidence: LexicalEvidence, reading: Reading) -> list[float]:
    """Return, unit by unit, the mean rarity of the question's identifiers that it holds; NaN when there are none.

    Identifiers that nobody holds do not count. A unit under a title that holds one is about it and counts in full.
    Years identify what a document tells; when a turn was said is known without words.
    """
    if not query.identifiers and not query.years:
        return [np.nan] * len(evidence.ids)
    authors = reading.columns(evidence.ids, ("author",))["author"].tolist()
    exact = {False: query.identifiers, True: (*query.identifiers, *query.years)}
    places = {
        kind: [place for place, term in enumerate(query.terms) if term in names and evidence.df[place]]
        for kind, names in exact.items()
    }
    return [_share_held(evidence, row, places[author == "document"]) for row, author in enumerate(authors)]


def _share_held(evidence: LexicalEvidence, row: int, places: Sequence[int]) -> float:
    if not places:
        return np.nan
    held = [
        1.0 if evidence.tf[row, _TOPIC, place] else _MENTIONED * bool(evidence.matched[row, place])
        for place in places
    ]
    return sum(float(evidence.rarities[place]) * share for place, share in zip(places, held, strict=True)) / len(
        places
    )
