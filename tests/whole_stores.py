"""A store with a bit of everything in it, and what two stores are compared by."""

from dataclasses import fields
from datetime import timedelta

from holdfast.store import contract
from holdfast.testing.builders import LATER, NEARER, Asker, draft
from holdfast.types import Document, Gate


def fill(store, units=40):
    """Write a bit of everything that a store can hold, for two tenants; return who asks it."""
    ana = Asker(store)
    ana.put(*(draft(f"u{i:03}", f"the {i}th boat of Ana has a red sail", minutes=i) for i in range(units)))
    ana.put(draft("s1", "we sail at nine", session="s", scope="session"))
    ana.put(draft("theirs", "Ben has a kite", user="ben", pinned=True))
    ana.put(draft("all", "for all", user=None, scope="global"))
    ana.put(draft("u000", "another tenant's boat", tenant="other"))
    ana.embed_all()
    ana.revise("u001", text="the boat was sold", recorded_time=LATER)
    ana.embed({"u001": NEARER["b"]})
    ana.revise("u001", text="the boat was bought back", recorded_time=LATER + timedelta(minutes=1))
    ana.apply(contract.Promotion(ana.units("s1")["s1"], decided()), contract.Access(ana.view, ("u002", "u003")))
    ana.apply(contract.Supersession(ana.view, "u004", "u005", LATER, "seen"))
    ana.apply(contract.Supersession(ana.view, "u006", "u007", LATER))
    ana.apply(contract.Reinstatement(ana.view, "u006", LATER + timedelta(minutes=9)))
    ana.apply(contract.DocumentChange(Document("local", "ana", "rules.md", b"- sail at nine", "/somewhere")))
    ana.apply(contract.DocumentChange(Document("other", None, "x.md", b"- no sail", "", core=False)))
    return ana


def decided():
    signals = dict.fromkeys((field.name for field in fields(Gate)), 0.5)
    return Gate(**{**signals, "promoted": True, "reason": "policy all"})


def all_of(store):
    """Return all that a store holds, by tenant."""
    return {
        tenant: Asker(store).by(tenant=tenant).look(lambda reading: [*map(flat, reading.stored(whole=True))])
        for tenant in ("local", "other")
    }


def flat(one):
    if isinstance(one, Document):
        return one
    unit = one.unit
    return one, unit.superseded_by, unit.superseded_why, unit.covered_by, unit.gate, unit.access_count
