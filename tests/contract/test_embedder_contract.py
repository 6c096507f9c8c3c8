"""Every embedder of ours keeps the contract: shipped models, a folder, both kinds of endpoint, the hash for tests."""

import shutil
from functools import cache

import pytest

from endpoint import EmbeddingServer
from holdfast.models import build_embedder
from holdfast.models.embedder import shipped_folder
from holdfast.settings import EmbeddingSettings
from holdfast.testing import EmbedderContract
from holdfast.testing.contracts import HashEmbedder


@cache
def built(name):
    """Load a shipped model once for all tests; what changes with use is for the contract to find out."""
    return build_embedder(EmbeddingSettings(embedder=name))


class TestMiniLM(EmbedderContract):
    def make_embedder(self):
        return built("minilm")


class TestMiniLMLoadedAnew(EmbedderContract):
    def make_embedder(self):
        return build_embedder(EmbeddingSettings(embedder="minilm", threads=2))


class TestPotion(EmbedderContract):
    def make_embedder(self):
        return build_embedder(EmbeddingSettings(embedder="potion"))


class TestPrefixes(EmbedderContract):
    uses_prefixes = True

    def make_embedder(self):
        settings = EmbeddingSettings(query_prefix="search_query: ", document_prefix="search_document: ", threads=2)
        return build_embedder(settings)


class TestHash(EmbedderContract):
    understands_meaning = False

    def make_embedder(self):
        return HashEmbedder()


class TestFolder(EmbedderContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        self.folder = tmp_path / "a model of the user's own"
        shutil.copytree(shipped_folder("minilm"), self.folder)

    def make_embedder(self):
        return build_embedder(EmbeddingSettings(embedder="onnx", folder=str(self.folder), pooling="none"))


class EndpointContract(EmbedderContract):
    understands_meaning = False
    dialect = ""

    @pytest.fixture(autouse=True)
    def _server(self):
        with EmbeddingServer() as server:
            self.url = server.url
            yield

    def make_embedder(self):
        return build_embedder(EmbeddingSettings(embedder=self.dialect, url=self.url, model="small", threads=2))


class TestOpenAI(EndpointContract):
    dialect = "openai"


class TestOllama(EndpointContract):
    dialect = "ollama"
