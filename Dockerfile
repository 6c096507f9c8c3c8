# Serves one memory over HTTP. docs/interfaces/container.md says how to build it, give it tokens and keep its data.
FROM python:3.11-slim

RUN useradd --system --create-home --uid 10001 holdfast \
 && mkdir /data && chown holdfast /data

COPY dist/*.whl /tmp/
RUN pip install --no-cache-dir "$(ls /tmp/*.whl)[server,documents]" && rm /tmp/*.whl

USER holdfast
WORKDIR /data
VOLUME /data
EXPOSE 8377
ENV HOLDFAST_STORE__PATH=/data/holdfast.db

HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8377/ready', timeout=4)"]

# Whoever listens to other machines needs tokens: without any, the server says so and ends.
ENTRYPOINT ["holdfast"]
CMD ["serve", "--host", "0.0.0.0"]
