"""The OpenAPI document is what the server does: generated requests, right and wrong, get answers that it names."""

import contextlib
import re

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks
from served import served

from builders import opened
from holdfast import __version__
from holdfast.server.http import ROUTED
from holdfast.server.openapi import describe
from holdfast.testing.contracts import HashEmbedder
from holdfast.verbs import VERBS

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
