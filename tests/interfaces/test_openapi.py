"""The OpenAPI document is what the server does: generated requests, right and wrong, get answers that it names."""

import contextlib
import re

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks
from served import client, served

from builders import opened
from holdfast import __version__
from holdfast.server.http import ROUTED
from holdfast.server.openapi import describe, draw_page, example
from holdfast.testing.contracts import HashEmbedder
from holdfast.verbs import VERBS, write_call

# Each example is a request to a real server: a tenth of what laws without one get.
REQUESTS = max(5, settings().max_examples // 10)
LENIENT = {"deadline": None, "suppress_health_check": [*HealthCheck]}
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
    checks.unsupported_method,
]
schema = schemathesis.openapi.from_dict(describe(__version__, ROUTED))
schema.config.generation.update(modes=[*GenerationMode])
# Without what schemathesis makes up for every parameter and every kind of mistake: some fifty requests an operation.
sample = schemathesis.openapi.from_dict(describe(__version__, ROUTED))
sample.config.phases.coverage.enabled = False


@pytest.fixture(scope="module")
def address():
    with contextlib.ExitStack() as stack:
        memory = stack.enter_context(opened(embedder=HashEmbedder()))
        memory.remember(["the ferry leaves at nine", "the tram leaves at ten"], user="ana", session="s")
        yield stack.enter_context(served(memory))


def of_each_operation(name, schema, requests, mark=lambda test: test):
    """Return a test of every operation, by name: schemathesis would give all of them one id."""
    tests = {}
    for operation in (found.ok() for found in schema.get_all_operations()):

        @settings(max_examples=requests, **LENIENT)
        def test(case, address):
            case.call_and_validate(base_url=address, checks=CHECKS, timeout=60)

        test.__name__ = re.sub(r"\W+", "_", f"test_{name}_{operation.label}").lower()
        tests[test.__name__] = mark(schema.include(path=operation.path, method=operation.method).parametrize()(test))
    return tests


globals().update(of_each_operation("one_request", sample, 1))
globals().update(of_each_operation("every_answer_is_one_that_the_document_names", schema, REQUESTS, pytest.mark.slow))


def test_the_document_names_every_verb_and_resolves():
    document = describe(__version__, ROUTED)
    operations = {made.get("operationId") for methods in document["paths"].values() for made in methods.values()}
    assert VERBS.keys() <= operations
    assert not [name for name in document["components"]["schemas"] if name.startswith("_")]
    for name in _refs(document):
        assert name in document["components"]["schemas"]


def _refs(value):
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"].rsplit("/", 1)[1]
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _refs(one)


def operations(document):
    """Yield every operation of a verb."""
    for path, methods in document["paths"].items():
        for made in methods.values():
            if path.startswith("/v1/"):
                yield made


def test_every_operation_and_argument_is_described_and_has_an_example():
    document = describe(__version__, ROUTED)
    for made in operations(document):
        name = made["operationId"]
        assert made["summary"], name
        [shown] = made["x-codeSamples"]
        assert shown["source"].startswith("curl "), name
        body = made.get("requestBody", {}).get("content", {}).get("application/json", {})
        for one in made["parameters"]:
            assert one["description"], (name, one["name"])
            assert not one.get("required") or "example" in one, (name, one["name"])
        for field, one in body.get("schema", {}).get("properties", {}).items():
            assert one["description"], (name, field)
        if body:
            assert {*body["schema"]["required"]} <= body["example"].keys() <= body["schema"]["properties"].keys(), (
                name
            )


def members(value):
    """Return the names of a value's members, of the first of a list; a unit leaves out what is at its default."""
    if isinstance(value, dict):
        return {name: members(one) for name, one in value.items() if name != "unit"}
    return [members(one) for one in value[:1]] if isinstance(value, list) else None


def test_the_examples_work_and_answer_as_they_say():
    document = describe(__version__, ROUTED)
    said = {made["operationId"]: made["responses"]["200"]["content"] for made in operations(document)}
    with opened(embedder=HashEmbedder()) as memory, served(memory) as address, client(address) as http:
        for verb in ROUTED:
            call = write_call(verb, example(verb))
            kind = {"Content-Type": call.media_type} if call.media_type else {}
            found = http.request(call.method, call.path, params=call.query, content=call.body, headers=kind)
            # Only an id that a summary has can be expanded, and nothing here is long enough for one.
            assert found.status_code == (404 if verb.name == "expand" else 200), (verb.name, found.text)
            if "example" in (shown := said[verb.name].get("application/json", {})):
                assert members(shown["example"]) == members(found.json()), verb.name


def test_the_page_marks_what_is_required_and_names_types_in_words():
    page = draw_page(describe(__version__, ROUTED))
    assert not re.search(r"`|\[&#34;(string|null)|https?://(?!127)", page)
    [search] = re.findall(r'<section id="search".*?</section>', page, re.DOTALL)
    assert re.search(
        r"<code>query</code></td><td>body</td><td>string or list</td><td><b>required</b>; a text", search
    )
    assert re.search(r"<code>session</code></td><td>body</td><td>string or null</td><td>the active one", search)
    assert "Example of an answer" in search
    assert '<a href="#SearchResult">SearchResult</a>' in search
    assert 'id="SearchResult"' in page
    assert "404 <code>NotFoundError</code>: the owner has no such unit." in page
