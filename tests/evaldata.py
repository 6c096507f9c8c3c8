"""Small evaluation data of our own: every schema that the harness reads, written into a folder.

The functions named for a thing build one of it, so that a test can spoil just one spot; `write_everything` makes a
folder that holds every schema once, quirks included. No sentence in here comes from real data.
"""

import gzip
import json
import lzma

# ---------------------------------------------------------------------------------------------------- files

_PACK = {".gz": lambda data: gzip.compress(data, mtime=0), ".xz": lzma.compress}


def write(path, value):
    """Write JSON, JSON lines or text, packed as the name says; return the path."""
    kind = path.name.removesuffix(path.suffix if path.suffix in _PACK else "")
    if isinstance(value, bytes):
        data = value
    elif isinstance(value, str):
        data = value.encode()
    elif kind.endswith(".jsonl"):
        data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in value).encode()
    else:
        data = json.dumps(value, ensure_ascii=False).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_PACK.get(path.suffix, bytes)(data))
    return path


# ------------------------------------------------------------------------------------- chats of two people


def said(dia_id, text, speaker="Wren", **extra):
    """Build one turn of a chat of two people."""
    return {"speaker": speaker, "dia_id": dia_id, "text": text, **extra}


def asked(question, evidence=(), category=4, answer="yes"):
    """Build one question about it."""
    return {"question": question, "answer": answer, "evidence": list(evidence), "category": category}


def two_people(name, sessions, qa, speakers=("Wren", "Odile")):
    """Build a chat of two people; `sessions` lists (date, turns)."""
    talk = {"speaker_a": speakers[0], "speaker_b": speakers[1]}
    for number, (date, turns) in enumerate(sessions, start=1):
        talk[f"session_{number}_date_time"] = date
        talk[f"session_{number}"] = turns
    return {
        "sample_id": name,
        "conversation": talk,
        "qa": qa,
        # Made from the answers: whoever reads these into a memory reads the answers.
        "event_summary": {"events_session_1": "SPOILER"},
        "observation": {"session_1_observation": "SPOILER"},
        "session_summary": {"session_1_summary": "SPOILER"},
    }


def talk(name="talk-1", topic="barge"):
    """Build a chat of two sessions, with a picture and one question of every category."""
    return two_people(
        name,
        [
            (
                "1:56 pm on 8 May, 2023",
                [
                    said("D1:1", f"The {topic} needs a coat of green paint before summer."),
                    said("D1:2", "My cousin keeps eleven goats behind the mill.", "Odile"),
                    said("D1:3", "Look at this!", blip_caption="a goat on a tin roof", query="goat roof"),
                ],
            ),
            (
                "9:05 am on 14 June, 2023",
                [
                    said("D2:1", f"We sold the {topic} to a potter from Trieste."),
                    said("D2:2", "The potter paid in ceramic owls.", "Odile"),
                    said("D2:3", "Fine."),
                ],
            ),
        ],
        [
            asked(f"What colour should the {topic} get?", ["D1:1"], 4, "green"),
            asked("How many goats does Odile's cousin keep?", ["D1:2"], 4, 11),
            asked("When was it sold to the potter?", ["D2:1"], 2, "14 June 2023"),
            asked("What did Wren sell, and what was it paid with?", ["D2:1; D2:2"], 1, "owls"),
            asked("Would Wren enjoy a pottery class?", ["D2:2", "D1:3"], 3, "likely"),
            {"question": "Where did Odile's goat swim to?", "adversarial_answer": "the mill", "evidence": ["D1:2"],
             "category": 5},
        ],
    )  # fmt: skip


def talk_index(*names):
    """Build the index beside `talk`: evidence put right, and where a literal answer stands in it."""
    evidence = [["D1:1"], ["D1:2"], ["D2:1"], ["D2:1", "D2:2"], ["D2:2", "D1:3"], ["D1:2"]]
    return [
        {"qid": f"locomo_{number}_qa{place}", "sample_id": name, "qa_index": place, "evidence": turns,
         "evidence_sessions": [], "category": 4, "image_evidence": place == 4, "answer_in_evidence_text": place == 0}
        for number, name in enumerate(names)
        for place, turns in enumerate(evidence)
    ]  # fmt: skip


def erratum(qid, correct=(), error_type="WRONG_CITATION"):
    """Build one row of an audit."""
    return {
        "question_id": qid, "question": "…", "golden_answer": "…", "category": 4, "error_type": error_type,
        "cited_evidence": [], "correct_evidence": list(correct), "reasoning": "…", "correct_answer": "…",
    }  # fmt: skip


# --------------------------------------------------------------------------- a haystack for every question


def turn(content, role="user", **extra):
    """Build one message of a chat with an assistant."""
    return {"role": role, "content": content, **extra}


def haystack(question_id, sessions, gold=(), **fields):
    """Build one question with its haystack; `sessions` lists (id, date, turns)."""
    row = {
        "question_id": question_id,
        "question_type": "single-session-user",
        "question": "Which instrument did I buy?",
        "question_date": "2023/06/01 (Thu) 10:00",
        "answer": "a zither",
        "answer_session_ids": list(gold),
        "haystack_session_ids": [session for session, _, _ in sessions],
        "haystack_dates": [date for _, date, _ in sessions],
        "haystack_sessions": [turns for _, _, turns in sessions],
    }
    return row | fields


ZITHER = [turn("I bought a zither at the harbour.", has_answer=True), turn("Lovely, enjoy it.", "assistant")]
SOUP = [turn("My soup was too salty."), turn("Add a potato.", "assistant")]
TENT = [turn("The tent leaks near the zip."), turn("Seal the seam with wax.", "assistant")]


def plain_haystack(question_id="q-one", **fields):
    """Build a haystack in which nothing is odd."""
    sessions = [
        ("s-soup", "2023/05/20 (Sat) 02:21", SOUP),
        ("s-zither", "2023/05/22 (Mon) 08:00", ZITHER),
        ("s-tent", "2023/05/24 (Wed) 19:30", TENT),
    ]
    return haystack(question_id, sessions, ["s-zither"], **fields)


# ------------------------------------------------------------------------------------- chats with probes


def probed(name, batches, probes):
    """Build a long chat; `batches` lists (anchor, messages), a message is (id, role, text, anchor or None)."""
    return {
        "conversation_id": name,
        "scale": "tiny",
        "topic": "gardens",
        "chat": [
            {
                "batch_number": number,
                "time_anchor": anchor,
                "turns": [
                    [
                        {"id": key, "role": role, "content": text, "index": f"{number},{place}"}
                        | ({"time_anchor": own} if own else {})
                        for place, (key, role, text, own) in enumerate(messages)
                    ]
                ],
            }
            for number, (anchor, messages) in enumerate(batches, start=1)
        ],
        "probing_questions": probes,
    }


def probe(question, sources=None, **fields):
    """Build one probing question."""
    return {"question": question, "ideal_response": "…", "rubric": ["…"], "source_chat_ids": sources} | fields


def garden(name="1"):
    """Build a long chat of two batches, and probes whose sources are a list, a table, and nothing."""
    return probed(
        name,
        [
            (
                "March-15-2024",
                [
                    (0, "user", "I planted quinces along the north wall. ->-> 1,1", "March-15-2024"),
                    (1, "assistant", "Quinces like shelter.", None),
                    (2, "user", "The gate hinge squeaks.\n->-> 1,2", None),
                ],
            ),
            (
                "April-02-2024",
                [
                    (3, "user", "I moved the quinces to the orchard. ->-> 2,1", "April-02-2024"),
                    (4, "assistant", "They will recover by May.", None),
                ],
            ),
        ],
        {
            "information_extraction": [probe("What did I plant along the north wall?", [0])],
            "contradiction_resolution": [
                probe("Where do the quinces grow?", {"first_statement": [0], "second_statement": [3]})
            ],
            "abstention": [probe("Which fertiliser did the neighbour use?", None)],
        },
    )


# --------------------------------------------------------------------------------- projects, replayed


def line(content, speaker="User", **extra):
    """Build one turn of a replayed chat."""
    return {"speaker": speaker, "content": content, "is_query": False, **extra}


def query(content, key="Q-1", category="Dynamic Updating"):
    """Build a turn that asks."""
    return line(content, is_query=True, query_id=key, category_name=category)


def answer(content, *sessions):
    """Build the turn that answers; the gold stands here."""
    return line(
        content,
        "Assistant",
        memory_used=[{"session_uuid": uuid, "content": "SPOILER"} for uuid in sessions],
        memory_session_uuids=list(sessions),
    )


def persona(*dialogues):
    """Build a persona's file; a dialogue is (uuid, date, turns)."""
    return {
        "_metadata": {"person_name": "Ida Vell"},
        "dialogues": [
            {"session_identifier": f"Project:{number}", "session_uuid": uuid, "current_time": date,
             "dialogue_turns": turns, "extracted_memory": [{"content": "SPOILER"}]}
            for number, (uuid, date, turns) in enumerate(dialogues)
        ],
    }  # fmt: skip


def lighthouse():
    """Build a persona whose questions rest on earlier sessions, their own and later ones."""
    return persona(
        ("u-lamp", "2024-03-01 (Friday)", [line("The lamp room needs new glass."), answer("Noted.")]),
        ("u-boat", "2024-03-05 (Tuesday)", [line("The supply boat comes on Mondays."), line("  "), answer("Good.")]),
        (
            "u-ask",
            "2024-03-09 (Saturday)",
            [
                query("When does the supply boat come again?", "Q-1"),
                answer("On Mondays.", "u-boat"),
                query("And what does the lamp room need?", "Q-2", "Temporal-reasoning"),
                answer("New glass.", "u-lamp", "u-ask", "u-later"),
            ],
        ),
        ("u-later", "2024-03-12 (Tuesday)", [line("We painted the stairs."), answer("Nice.")]),
    )


# ------------------------------------------------------------------------------------------------ corpora


def documents(count=6):
    """Build documents in which each animal stands once."""
    animals = ("otter", "heron", "badger", "lynx", "newt", "wren", "hare", "mole", "stoat", "finch")
    return [
        {"id": f"d{place}", "title": f"On the {animal}", "text": f"A {animal} lives near bridge {place}."}
        for place, animal in enumerate(animals[:count])
    ]  # fmt: skip


QUERIES = [
    {"id": "q1", "question": "Where does the otter live?", "answer": "near bridge 0", "type": "bridge",
     "gold_ids": ["d0"], "answer_in_gold": True},
    {"id": "q2", "question": "Do the heron and the lynx live near a bridge?", "answer": "yes", "type": "comparison",
     "gold_ids": ["d1", "d3"], "answer_in_gold": False},
]  # fmt: skip
QRELS = "query_id\tdoc_id\tscore\nq1\td0\t4\nq1\td4\t1\nq1\td5\t0\nq2\td1\t1\nq2\td3\t2\n"


def write_corpus(folder, corpus=None, queries=None, qrels=QRELS, packed=".gz"):
    """Write a corpus with judgements; `qrels=None` leaves them out."""
    write(folder / f"corpus.jsonl{packed}", documents() if corpus is None else corpus)
    write(folder / f"queries.jsonl{packed}", QUERIES if queries is None else queries)
    if qrels is not None:
        write(folder / "qrels.tsv", qrels)
    return folder


def write_by_split(folder, **splits):
    """Write the same in the other common spelling: `_id`, and a folder of judgements by split."""
    write(
        folder / "corpus.jsonl",
        [{"_id": row["id"], "title": row["title"], "text": row["text"]} for row in documents()],
    )
    write(folder / "queries.jsonl", [{"_id": row["id"], "text": row["question"]} for row in QUERIES])
    for split, text in (splits or {"test": QRELS.replace("query_id\tdoc_id", "query-id\tcorpus-id")}).items():
        write(folder / "qrels" / f"{split}.tsv", text)
    return folder


# -------------------------------------------------------------------------------------------------- pages


def page(name, paragraphs, questions, relation="P-works"):
    """Build a page; a question is (id, text, [(paragraph, answer)])."""
    return {
        "page": name,
        "relation": relation,
        "paras": paragraphs,
        "questions": [
            {"qid": key, "question": text,
             "answers": [{"para": para, "start": 0, "end": len(found), "text": found} for para, found in answers]}
            for key, text, answers in questions
        ],
    }  # fmt: skip


def mayor(name="/page/Ilse_Brandt"):
    """Build a page about one person in several years."""
    return page(
        name,
        [
            "Ilse Brandt was mayor of Hoverdam from 1961 to 1965.",
            "From 1965 to 1970 she ran the tram company of Ostrava.",
            "She bred ponies after 1970.",
        ],
        [
            (f"{name}#1", "What did Ilse Brandt do in 1963?", [(0, "mayor of Hoverdam")]),
            (f"{name}#2", "What did Ilse Brandt do in 1968?", [(1, "ran the tram company")]),
            (f"{name}#3", "What did Ilse Brandt do in 1940?", [(0, "")]),
        ],
    )


# --------------------------------------------------------------------------------------------- everything


def life(name="p-1"):
    """Return one person who moves house, as `tests/data/changes` has them."""
    said = ("I live in Hull.", "Nice.", "We moved to Ripon!")
    turns = [
        {"id": f"{name}-t{place}", "session": f"{name}-s{place}", "at": f"2024-0{place + 1}-01T10:00:00Z",
         "role": "assistant" if place == 1 else "user", "text": text}
        for place, text in enumerate(said)
    ]  # fmt: skip
    asked = {"case": "home", "topic": "home", "asked_at": "2024-05-01T10:00:00Z"}
    old, new = f"{name}-t0", f"{name}-t2"
    questions = [
        asked | {"id": f"{name}-q0", "kind": "plain", "about": "now", "text": "Where do I live?", "gold": [new],
                 "current": new, "earlier": [old]},
        asked | {"id": f"{name}-q1", "kind": "plain", "about": "then", "text": "Where did I live before?",
                 "gold": [old], "current": None, "earlier": []},
        asked | {"id": f"{name}-q2", "kind": "alike-if", "about": "now", "text": "What is my town?", "gold": [new],
                 "current": new, "earlier": [], "decoys": [f"{name}-t1"], "also": [old]},
        asked | {"id": f"{name}-q3", "kind": "unknown", "about": "unknown", "text": "How old am I?", "gold": [],
                 "current": None, "earlier": []},
    ]  # fmt: skip
    return {"person": name, "turns": turns, "questions": questions}


def write_everything(root):
    """Write every schema once, packed in every way, with an unknown file between them."""
    names = ("talk-1", "talk-2", "talk-3")
    topics = ("barge", "sledge", "canoe")
    write(root / "talks" / "talks.json.gz", [talk(*pair) for pair in zip(names, topics, strict=True)])
    write(root / "talks" / "index.jsonl.gz", talk_index(*names))
    write(root / "talks" / "audit.json.gz", [erratum("locomo_0_qa1", ["D1:2"])])
    write(
        root / "stacks" / "stacks.json.xz",
        [
            plain_haystack("q-one"),
            plain_haystack("q-two", question="What is wrong with my tent?", answer_session_ids=["s-tent"]),
            plain_haystack("q-three_abs", question="Which drum did I buy?"),
        ],
    )
    write(root / "gardens" / "small.json.xz", [garden("1"), garden("2")])
    write(root / "gardens" / "large.json.xz", [garden("1")])
    write(root / "projects" / "ida.json.gz", lighthouse())
    write(root / "projects" / "jan.json", lighthouse())
    write_corpus(root / "animals")
    write_by_split(root / "beasts")
    write(root / "pages" / "pages.jsonl.gz", [mayor(), mayor("/page/Jo_Marsh")])
    write(root / "lives" / "lives.jsonl", [life(), life("p-2")])
    write(root / "notes.json", {"nothing": "to see"})
    return root
