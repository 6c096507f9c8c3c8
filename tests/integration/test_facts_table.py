"""`Memory.facts` and `holdfast facts`: what was stated, since when, from where, and what it replaced."""

import pytest

from builders import later, opened
from commands import BY_WORDS, command_line
from holdfast import Fact, InputError, Settings


@pytest.fixture
def memory():
    with opened() as opened_memory:
        yield opened_memory


def say(memory, text, day, *, user="ana", **more):
    [written] = memory.remember(text, user=user, at=later(days=day), **more)
    return written.id


def rows(memory, user="ana", **more):
    return [(one.subject, one.relation, one.value) for one in memory.facts(user=user, **more)]


def test_a_fact_ends_where_its_unit_says_more_and_stays(memory):
    first = say(memory, "I live in Ghent with my cat. I work at Fietskoerier.", 0)
    moved = say(memory, "I moved to Rotterdam.", 3)
    home, work = memory.facts(user="ana")
    assert (home.relation, home.value, home.sources, home.since) == ("lives_in", "Rotterdam", (moved,), later(days=3))
    assert (home.replaced, home.replaced_in) == ("Ghent", first)
    assert (work.relation, work.value, work.current) == ("works_at", "Fietskoerier", True)
    assert first in {unit.id for unit in memory.list(user="ana")}


def test_history_says_until_when_and_by_what(memory):
    say(memory, "I live in Ghent. It rains.", 0)
    moved = say(memory, "I moved to Rotterdam.", 3)
    old, new = memory.facts(user="ana", current_only=False)
    assert (old.value, old.current, old.until, old.ended_by) == ("Ghent", False, later(days=3), moved)
    assert new.line == "ana | lives_in | Rotterdam | since 2026-05-07, before that Ghent"
    assert old.line == "ana | lives_in | Ghent | since 2026-05-04 until 2026-05-07"


def test_said_twice_is_one_fact_since_the_first_time(memory):
    ids = tuple(say(memory, text, day) for day, text in enumerate(("I live in Ghent.", "Well, I live in Ghent!")))
    [fact] = memory.facts(user="ana")
    assert (fact.sources, fact.since) == (ids, later(days=0))
    memory.forget(user="ana", ids=[ids[0]])
    [fact] = memory.facts(user="ana")
    assert (fact.sources, fact.since) == (ids[1:], later(days=1))


def test_what_a_later_turn_says_something_else_of_is_marked_as_earlier(memory):
    say(memory, "I work at Northwind.", 0)
    later_one = say(memory, "I work at Fietskoerier.", 3)
    say(memory, "Always answer in French.", 4)
    say(memory, "Call me Max.", 5)
    marks = {one.value: (one.current, one.later_in, one.later_at) for one in memory.facts(user="ana")}
    assert marks == {
        "Northwind": (True, later_one, later(days=3)), "Fietskoerier": (True, "", None),
        "Always answer in French.": (True, "", None), "Call me Max.": (True, "", None),
    }  # fmt: skip
    assert "ana | works_at | Northwind | since 2026-05-04, earlier: see 2026-05-07" in memory.facts(user="ana").text
    say(memory, "I work at Northwind again.", 9)
    assert [one.value for one in memory.facts(user="ana") if one.later_in] == ["Fietskoerier"]


def test_what_was_taken_away_is_no_longer_known(memory):
    say(memory, "I work at Northwind.", 0)
    say(memory, "I no longer work at Northwind.", 1)
    assert rows(memory) == []
    assert rows(memory, current_only=False) == [("ana", "works_at", "Northwind")]


def test_units_that_do_not_count_state_nothing(memory):
    old = say(memory, "I live in Ghent.", 0)
    by = say(memory, "We have left that town behind.", 1)
    say(memory, "I work at Northwind.", 0, ttl=1)
    say(memory, "I use Trello.", 0, valid_to=later(days=-1))
    memory.supersede(old, by=by, user="ana")
    assert rows(memory, reference_time=later(days=2)) == [("ana", "works_at", "Northwind")]
    gone = {one.value: one for one in memory.facts(user="ana", current_only=False)}
    assert (gone["Ghent"].ended_by, gone["Ghent"].until) == (by, later(days=1))
    assert (gone["Trello"].current, gone["Trello"].until) == (False, later(days=-1))
    memory.reinstate(old, user="ana")
    assert ("ana", "lives_in", "Ghent") in rows(memory)


def test_as_of_lists_what_was_known_then():
    moment = [later(days=0)]
    with opened(now=lambda: moment[0]) as memory:
        memory.remember("I live in Ghent.", user="ana")
        moment[0] = later(days=5)
        memory.remember("I moved to Rotterdam.", user="ana")
        assert rows(memory) == [("ana", "lives_in", "Rotterdam")]
        assert rows(memory, as_of=later(days=1)) == [("ana", "lives_in", "Ghent")]


def test_a_user_sees_own_facts_and_shared_ones(memory):
    say(memory, "I live in Ghent.", 0)
    say(memory, "I live in Oslo.", 0, user="bob")
    say(memory, "The ferry pier depends on the generator.", 0, user="bob", scope="global")
    shared = ("ferry pier", "depends_on", "generator")
    assert rows(memory) == [("ana", "lives_in", "Ghent"), shared]
    assert rows(memory, "eve") == [shared]
    assert memory.facts(user="eve", tenant="other") == ()


def test_facts_of_documents_name_them(memory):
    memory.ingest("# Ferry\n\nThe ferry pier depends on the generator.", name="ferry.md", user="ana")
    memory.remember("no words", user="ana", id="f")
    memory.update("f", user="ana", text="Berta uses the tide gauge.")
    berta, ferry = memory.facts(user="ana")
    assert (berta.document, ferry.document) == ("", "ferry.md")
    assert ferry.sources[0].startswith("ferry.md#")


def test_a_given_fact_is_listed_as_it_is():
    with opened(Settings.load({"analysis.aliases": ["k8s = Kubernetes"]})) as memory:
        unit = memory.get(memory.remember("the cluster", user="ana")[0].id, user="ana")
        memory.remember(unit.evolve(id="own", fact=Fact("k8s", "has part", "kubelet", 0.5)), user="ana")
        [fact] = memory.facts(user="ana", subject="Kubernetes", relation="has part")
        assert (fact.subject, fact.relation, fact.value, fact.confidence) == ("k8s", "has part", "kubelet", 0.5)
        assert memory.facts(user="ana", relation="uses") == memory.facts(user="ana", subject="kubelet") == ()
        with pytest.raises(InputError, match="subject"):
            memory.facts(user="ana", subject=7)


def test_the_table_is_the_same_whatever_was_written_first():
    said = ["I live in Ghent.", "I use Trello.", "I work at Northwind.", "I moved to Rotterdam."]
    tables = []
    for order in (said, said[::-1]):
        with opened() as memory:
            for text in order:
                say(memory, text, said.index(text))
            tables.append(memory.facts(user="ana").text)
    assert tables[0] == tables[1]


def test_facts_survive_a_new_process(tmp_path):
    for _ in range(2):
        with opened(path=tmp_path / "m.db") as memory:
            memory.remember("I live in Ghent.", user="ana", id="home")
            assert memory.facts(user="ana").text.startswith("ana | lives_in | Ghent | since ")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs `holdfast` in an empty folder, by words alone, for ana."""
    command = command_line(tmp_path, monkeypatch, COLUMNS="200", **BY_WORDS)
    return lambda *arguments: command(*arguments, "--user", "ana")


def test_the_command_prints_lines_and_json(run):
    run("remember", "I live in Ghent.", "--id", "home", "--at", "2026-04-02T09:00:00Z")
    assert run("facts") == "ana | lives_in | Ghent | since 2026-04-02   home\n"
    [fact] = run("facts", "--relation", "lives_in", "--json")
    assert fact == {
        "subject": "ana", "relation": "lives_in", "value": "Ghent", "since": "2026-04-02T09:00:00.000000Z",
        "sources": ["home"], "confidence": 0.9, "current": True,
    }  # fmt: skip
    assert run("facts", "--subject", "bob", "--json") == []
