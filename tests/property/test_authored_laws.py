"""Laws of the partition (C14; law 3): nothing is lost, nothing is doubled, and every node is in its place."""

import re

from hypothesis import event, example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from holdfast.documents.markdown import partition
from holdfast.errors import InputError

LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")

words = st.lists(
    st.sampled_from(
        ["harbour", "must", "You", "never", "*bold*", "`code`", "Use", "it", "é漢", "[a](b)", "<b>", "|"]
    ),
    min_size=1,
    max_size=6,
).map(" ".join)


def indented(text, by):
    return text.replace("\n", "\n" + " " * by)


def nested(inner):
    return st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda items: "\n".join(f"- {indented(i, 2)}" for i in items)),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda items: "\n\n".join(f"{n}. {indented(i, 3)}" for n, i in enumerate(items, 1))
        ),
        inner.map(lambda text: "> " + text.replace("\n", "\n> ")),
        st.tuples(inner, inner).map(lambda pair: "- " + indented("\n\n".join(pair), 2)),
    )


plain = st.one_of(
    words.map(lambda text: f"Word {text}"),
    st.lists(words.map(lambda text: f"w {text}"), min_size=2, max_size=3).map("\n".join),
    st.tuples(st.integers(1, 6), words).map(lambda pair: f"{'#' * pair[0]} {pair[1]}"),
    words.map(lambda text: f"Title {text}\n====="),
    words.map(lambda text: f"```sh\n{text}\n\n- not an item\n```"),
    words.map(lambda text: f"| a | b |\n|---|---|\n| {text.replace('|', '')} | c |"),
    words.map(lambda text: f"<!-- {text}\n\n# hidden\n-->"),
    words.map(lambda text: f"<div>\n{text}\n</div>"),
    words.map(lambda text: f"- [ ] {text}"),
)
# Blocks that belong to no node.
loose = st.sampled_from(["***", "___", "- - -", '[a]: b "title"', "[c]:\n  <d e>"])
blocks = st.one_of(
    st.recursive(plain, nested, max_leaves=6).map(lambda text: (text, False)),
    loose.map(lambda text: (text, True)),
)
fronts = st.sampled_from(["", "", "---\nname: x\n---\n", "---\nhop_targets: [a, b]\n...\n", "---\nunclosed: x\n\n"])

# Random Markdown: whatever these characters happen to make.
wild = st.text(st.sampled_from("-*+>#`~|[]():!<&\\ \t\n\n\n\r=_.ab1\"'é漢\u00a0\f\u2028"), max_size=120)
sources = st.one_of(
    wild,
    st.tuples(fronts, st.lists(blocks.map(lambda pair: pair[0]), max_size=6)).map(
        lambda pair: pair[0] + "\n\n".join(pair[1])
    ),
)


def read(source):
    """Return the nodes, or none where there is nothing to read."""
    try:
        return partition("notes.md", source.encode()).nodes
    except InputError as error:
        if "no content" not in str(error):
            raise
        return ()


def held(source, nodes):
    """Return, for each line of the source, the ordinals of the nodes that hold it."""
    lines, at, holders = LINE.findall(source), 0, []
    for line in lines:
        end = at + len(line.encode())
        holders.append([n.ordinal for n in nodes if n.position < end and at < n.position + len(n.markdown.encode())])
        at = end
    return list(zip(lines, holders, strict=True))


def blank(line):
    return not line.strip(" \t\r\n")


@given(fronts.filter(lambda front: "unclosed" not in front), st.lists(blocks, max_size=8))
def test_every_line_belongs_to_one_node_but_for_breaks_and_link_definitions(front, parts):
    # Definitions and breaks stand alone here, so it is known beforehand which lines are nobody's.
    source = front + "\n\n".join(text for text, _ in parts)
    expected = [1] * front.count("\n")
    for text, is_loose in parts:
        expected += [0 if is_loose or blank(line) else 1 for line in text.split("\n")] + [0]
    for (line, holders), count in zip(held(source, read(source)), expected, strict=False):
        assert blank(line) or len(holders) == count, line


@given(wild)
@example("---\n- a\n\n\n  b\n\n\n***\n[x]: y\n[x]: z\ntext\n")
@example("- a\n\f\n")
@example("```\n\n\n")
def test_the_same_holds_for_whatever_markdown_random_characters_make(source):
    nodes, env = read(source), {}
    lines = held(source, nodes)
    first = len(LINE.findall(nodes[0].markdown)) if nodes and nodes[0].kind == "front_matter" else 0
    body = "".join(line for line, _ in lines[first:])
    tokens = MarkdownIt("commonmark").enable("table").parse(body, env)
    breaks = {line for token in tokens if token.type == "hr" and token.level == 0 for line in range(*token.map)}
    references = [*env.get("references", {}).values(), *env.get("duplicate_refs", [])]
    definitions = {line for reference in references for line in range(*reference["map"])}
    assert all(len(holders) == 1 for _, holders in lines[:first])
    for number, (line, holders) in enumerate(lines[first:]):
        assert len(holders) <= 1, line
        if number in breaks:
            assert holders == []
        elif not blank(line) and number not in definitions:
            assert len(holders) == 1, line
    event(f"{len(nodes)} nodes")


@given(sources)
def test_nodes_are_pieces_of_the_source_in_order(source):
    raw, end = source.encode(), 0
    for ordinal, node in enumerate(read(source)):
        piece = node.markdown.encode()
        assert node.ordinal == ordinal
        assert node.position >= end
        end = node.position + len(piece)
        assert raw[node.position : end] == piece
        assert piece
        assert not node.markdown.endswith(("\n", "\r"))
        assert node.position == 0 or raw[node.position - 1 : node.position] in (b"\n", b"\r")


@given(sources)
def test_tiers_follow_from_kinds_and_are_disjoint(source):
    allowed = {
        "front_matter": {"hard"}, "item": {"hard"}, "quote": {"soft"}, "paragraph": {"soft", "variant"},
        "heading": {"variant"}, "code": {"variant"}, "html": {"variant"}, "table": {"variant"},
    }  # fmt: skip
    nodes = read(source)
    assert all(node.tier in allowed[node.kind] for node in nodes)
    tiers = {tier: [n.position for n in nodes if n.tier == tier] for tier in ("hard", "soft", "variant")}
    assert sorted(at for positions in tiers.values() for at in positions) == [node.position for node in nodes]
    assert all(positions == sorted(set(positions)) for positions in tiers.values())


@given(sources)
def test_the_headings_of_a_node_are_those_a_reader_would_name(source):
    nodes = read(source)
    level = {
        n.ordinal: len(mark[0]) if (mark := re.match(r"#+", n.markdown.lstrip(" "))) else setext_level(n.markdown)
        for n in nodes
        if n.kind == "heading"
    }
    for node in nodes:
        # Walk up: the nearest heading above, then the nearest above that which is of a higher rank, …
        found, rank = [], level.get(node.ordinal, 7)
        for above in range(node.ordinal - 1, -1, -1):
            if above in level and level[above] < rank:
                found.insert(0, above)
                rank = level[above]
        assert node.headings == tuple(found)


def setext_level(markdown):
    return 1 if "=" in LINE.findall(markdown)[-1] else 2


@given(sources)
def test_partition_is_a_function_of_its_bytes(source):
    assert read(source) == read(source)


@given(sources.filter(lambda source: "\r" not in source), st.sampled_from(["\r\n", "\r"]), st.booleans())
def test_line_ends_and_a_byte_order_mark_change_nothing_but_the_source(source, end, marked):
    there = read(("\ufeff" if marked else "") + source.replace("\n", end))
    here = read(source)
    assert [(n.kind, n.tier, n.text, n.headings) for n in there] == [
        (n.kind, n.tier, n.text, n.headings) for n in here
    ]
    assert [n.markdown.replace(end, "\n") for n in there] == [n.markdown for n in here]


@given(st.binary(max_size=40))
def test_any_bytes_are_a_document_or_an_input_error_that_names_it(raw):
    try:
        # A document that was emptied has no rules, and nothing else.
        right = bool(partition("notes.md", raw).nodes) == bool(raw.decode("utf-8-sig").strip())
    except InputError as error:
        right = "'notes.md'" in str(error)
    assert right
