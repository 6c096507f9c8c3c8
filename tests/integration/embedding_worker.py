"""Embed what waits in a store, together with others; `test_postgres_workers` kills some of these."""

import sys
import time

from holdfast import Settings
from holdfast.lifecycle.embedding import StoreEmbedder
from holdfast.openers import derivation, open_store
from holdfast.store.copying import view_of
from holdfast.testing.contracts import HashEmbedder


class Slow(HashEmbedder):
    """Says which texts it embeds, then waits for a word before it does when it is told to."""

    def embed_documents(self, texts):
        sys.stdout.write("".join(f"{text}\n" for text in texts) + "\n")
        sys.stdout.flush()
        if len(sys.argv) > 2:
            sys.stdin.readline()
        return super().embed_documents(texts)


settings = Settings()
store = open_store(sys.argv[1], settings.store, derivation(settings))
count = lambda: store.stats(view_of("local"), whole=True)  # noqa: E731
StoreEmbedder(store, settings.embedding, settings.gate, Slow(), count, time.perf_counter).embed_shared(lambda _: None)
store.close()
