"""The query profile (C7): what a question asks for, by tables and small rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.text.questions import ACTS_FOR_ROLE, ROLES_FOR_ACT, is_follow_up, profile_query
from holdfast.text.terms import terms
from holdfast.types import ACTS, ROLES

# The tables of C1, written out by hand.
PREFERRED = {
    "compare": "Comparison Evaluation",
    "explain": "Explanation Diagnostic Narrative",
    "recommend": "Comparison Evaluation Procedure",
    "diagnose": "Diagnostic Explanation",
    "implement": "Procedure Constraint",
    "verify": "Constraint Definition",
    "define": "Definition Explanation",
    "evaluate": "Evaluation Comparison Narrative",
    "identify": "Narrative Description Definition",
    "describe": "Description Narrative Explanation",
}
DEFAULT_ACTS = {
    "Comparison": "compare",
    "Explanation": "explain",
    "Procedure": "implement",
    "Definition": "define",
    "Evaluation": "evaluate",
    "Diagnostic": "diagnose",
    "Constraint": "verify",
    "Narrative": "explain describe",
    "Description": "describe",
}


def test_every_act_prefers_the_roles_of_the_contract():
    assert {act: " ".join(roles) for act, roles in ROLES_FOR_ACT.items()} == PREFERRED
    assert set(ROLES_FOR_ACT) == set(ACTS)


def test_every_role_has_the_default_acts_of_the_contract():
    assert {role: " ".join(acts) for role, acts in ACTS_FOR_ROLE.items()} == DEFAULT_ACTS
    assert set(ACTS_FOR_ROLE) == set(ROLES)


@pytest.mark.parametrize(
    ("question", "act"),
    [
        ("Compare the red kettle with the blue one", "compare"),
        ("What is the difference between the two leases?", "compare"),
        ("Is rye bread better than wheat?", "compare"),
        ("Explain the heating bill", "explain"),
        ("Why did the plumber come twice?", "explain"),
        ("how come the garden flooded", "explain"),
        ("Recommend a dentist near the harbour", "recommend"),
        ("Which of the two flats should I take?", "recommend"),
        ("Diagnose the rattle in the van", "diagnose"),
        ("The dishwasher is not working again", "diagnose"),
        ("My kettle doesn't work any more", "diagnose"),
        ("My kettle doesn’t work any more", "diagnose"),
        ("How do I descale the coffee machine?", "implement"),
        ("Please implement the new rota", "implement"),
        ("Verify the deposit", "verify"),
        ("Define compound interest", "define"),
        ("What does hygge mean?", "define"),
        ("What is an offset mortgage?", "define"),
        ("Did Rosa enjoy the opera?", "evaluate"),
        ("Assess my savings plan", "evaluate"),
        ("Which bakery did we like?", "identify"),
        ("How many bees did the swarm have?", "identify"),
        ("Name the vet", "identify"),
        ("Describe the cottage", "describe"),
        ("Tell me about the cottage", "describe"),
    ],
)
def test_the_act_of_a_question_and_the_roles_it_needs(question, act):
    profile = profile_query(question)
    assert profile.act == act
    assert profile.needed_roles == frozenset(PREFERRED[act].split())


def test_a_statement_has_no_act_and_needs_no_role():
    profile = profile_query("my allergy to hazelnuts")
    assert profile.act is None
    assert profile.needed_roles == frozenset()


def test_the_text_is_kept_as_it_was_asked():
    assert profile_query("  Describe   the Cottage!").text == "  Describe   the Cottage!"


def test_terms_are_distinct_and_in_reading_order():
    assert profile_query("bees and more bees near hives, bees").terms == ("bee", "near", "hive")


# ------------------------------------------------------------------------------------------- the head verb


@pytest.mark.parametrize("head", ["Describe", "describe", "Please describe", " please  Describe"])
def test_an_act_verb_at_the_head_is_not_what_is_asked_about(head):
    assert profile_query(f"{head} the slate roof repair").terms == ("slate", "roof", "repair")


def test_an_act_verb_further_in_is_kept():
    assert "describ" in profile_query("who could describe the slate roof").terms


def test_a_question_that_is_only_an_act_verb_keeps_it():
    assert profile_query("Summarise").terms == tuple(terms("Summarise"))


@pytest.mark.parametrize(
    ("question", "entity"),
    [
        ("Lisbon flat deposit amount", "lisbon"),
        ("Nadia birthday cake flavour", "nadia"),
        ("Verity's surgery opening hours", "veriti"),
        ("Definely subscription price", "defin"),
        ("Name.com renewal price", "name.com"),
        ("Compare.eu invoice number", "compare.eu"),
        ("List-Unsubscribe header fix", "list-unsubscrib"),
        ("debug_toolbar install notes", "debug_toolbar"),
    ],
)
def test_an_entity_at_the_head_is_never_stripped(question, entity):
    assert any(term.startswith(entity) for term in profile_query(question).terms)


@given(st.sampled_from(["Oslo", "Berta", "PLUM-1187", "v1.4.2", "Österreich", "京都"]), st.text(max_size=20))
def test_no_word_but_an_act_verb_ever_leaves_a_question(entity, rest):
    assert set(terms(f"{entity} {rest}")) == set(profile_query(f"{entity} {rest}").terms)


# ---------------------------------------------------------------------------------------------- follow-ups


def test_a_follow_up_with_fewer_than_three_terms_borrows_the_previous_message():
    profile = profile_query("and the price?", earlier=["Which oak table did Marek restore?"])
    assert profile.terms == ("price", "oak", "tabl", "marek", "restor")
    assert profile.borrowed == "Which oak table did Marek restore?"


def test_two_terms_are_still_too_few_to_stand_alone():
    assert profile_query("the oak price?", earlier=["Which lamp did Marek restore?"]).terms[:3] == (
        "oak",
        "price",
        "lamp",
    )


def test_a_question_with_three_terms_stands_alone():
    profile = profile_query("price of oak tables", earlier=["Which lamp did Marek restore?"])
    assert profile.terms == ("price", "oak", "tabl")
    assert profile.borrowed is None


def test_a_question_of_stop_words_only_borrows_too():
    assert profile_query("and then?", earlier=["When is the kiln free?"]).terms == ("kiln", "free")


def test_the_act_verb_does_not_count_towards_the_three_terms():
    assert profile_query("Describe the kiln", earlier=["my pottery course in June"]).borrowed is not None


@pytest.mark.parametrize("question", ["Where do I live?", "What's my dog called?", "Who is Ana?", "Can we swim?"])
def test_a_short_question_that_stands_alone_borrows_nothing(question):
    earlier = ["I have been baking sourdough all week, and the oven is broken."]
    assert profile_query(question, earlier=earlier).borrowed is None
    assert not is_follow_up(question)
    assert profile_query(question, earlier=earlier, any_short=True).borrowed is not None  # the contract's rule


def test_without_a_previous_message_nothing_is_borrowed():
    assert profile_query("price?").borrowed is None
    assert profile_query("price?", earlier=[""]).borrowed is None


def test_borrowed_words_change_neither_the_text_nor_the_act():
    profile = profile_query("why?", earlier=["Compare the two kilns with Rosa"], speakers=["Rosa"])
    assert (profile.text, profile.act, profile.participants) == ("why?", "explain", ())


# --------------------------------------------------------------------------- participants and perspective


def test_participants_are_the_known_speakers_that_the_question_names():
    speakers = ["Ana", "Bruno", "Maria Clara", ""]
    assert profile_query("What did bruno tell Maria and Clara?", speakers=speakers).participants == (
        "Bruno",
        "Maria Clara",
    )
    assert profile_query("What did Bruna bake?", speakers=speakers).participants == ()


@pytest.mark.parametrize("name", ["Jean-Luc", "O'Neill", "Dr. Okafor", "प्रिया", "Zoë"])
def test_a_name_with_a_hyphen_apostrophe_dot_or_mark_is_recognised(name):
    assert profile_query(f"What did {name} cook for us?", speakers=[name]).participants == (name,)


@pytest.mark.parametrize(
    ("question", "perspective"),
    [
        ("Paste the packing list for the ferry again, please", "assistant"),
        ("What did you recommend for the leak?", "assistant"),
        ("Repeat your advice about the leak", "assistant"),
        ("in our last conversation, what came up?", "assistant"),
        ("What did Bruno pay for the boat?", "Bruno"),
        ("What did I pay for the boat?", "user"),
        ("Where is my passport?", "user"),
        ("Who painted the boat?", None),
    ],
)
def test_the_perspective_is_the_assistants_a_named_speakers_or_the_users_own(question, perspective):
    assert profile_query(question, speakers=["Bruno"]).perspective == perspective


@given(st.text(max_size=60), st.none() | st.text(max_size=60), st.lists(st.text(max_size=8), max_size=3))
def test_any_text_has_a_profile_and_it_is_always_the_same(text, previous, speakers):
    profile = profile_query(text, earlier=[previous] if previous else [], speakers=speakers)
    assert profile == profile_query(text, earlier=[previous] if previous else [], speakers=speakers)
    assert len(set(profile.terms)) == len(profile.terms)
    assert profile.needed_roles == frozenset(ROLES_FOR_ACT[profile.act] if profile.act else ())
    assert set(profile.participants) <= set(speakers)


@pytest.mark.parametrize(
    ("question", "summary"),
    [
        ("Give me a summary of all my doctors", True),
        ("Summarise what you know about my health", True),
        ("Sum up my week", True),
        ("A short recap of the trip, please", True),
        ("How many doctors did I visit?", False),
        ("What sum did I pay?", False),
    ],
)
def test_a_question_for_all_that_was_said_is_known_as_such(question, summary):
    assert profile_query(question).summary is summary


# ------------------------------------------------------------------------------------------------ going on


def test_a_follow_up_of_a_follow_up_borrows_from_the_message_that_names_the_topic():
    earlier = ["My oak table and my lamp", "Which kiln is free?", "and the price?"]
    assert profile_query("and why?", earlier=earlier).borrowed == "Which kiln is free?\nand the price?"
    assert profile_query("and why?", earlier=["Which oak table is it?", "so", "and", "hm"]).borrowed == "so\nand\nhm"


def test_bare_keywords_are_no_follow_up():
    assert [is_follow_up(text) for text in ("and the price?", "why?", "oak", "oak table", "the oak kiln lamp")] == [
        True,
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("question", "continues"),
    [
        ("What\u2019s next for the pond?", True),
        ("What should we do next to finish the pond?", True),
        ("Let's get the pond filled", True),
        ("I would like to continue with the pond", True),
        ("Where were we?", True),
        ("What do I plan for next month?", False),
        ("What do I plan for the next few weeks?", False),
        ("Who lives next door?", False),
        ("What stands next to the pond?", False),
        ("Where does my resume stand?", False),
        ("When did Ana continue her studies?", False),
    ],
)
def test_words_tell_whether_something_is_gone_on_with(question, continues):
    assert profile_query(question).continues is continues
