# fontes serve: docker build -t fontes . && docker run -p 127.0.0.1:8080:8080 -v ./harbour.index:/index:ro fontes
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
# Extras of the image: --build-arg EXTRAS=server,neural for pipelines with models.
ARG EXTRAS=server
RUN python -m venv /opt/fontes \
    && /opt/fontes/bin/pip install --no-cache-dir -c constraints.txt ".[${EXTRAS}]"

FROM python:3.13-slim
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin fontes \
    && install -d -o fontes -g fontes /cache
COPY --from=build /opt/fontes /opt/fontes
# The package belongs to root; compiled kernels and caches go to /cache, which may be a volume.
ENV PATH=/opt/fontes/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    NUMBA_CACHE_DIR=/cache/numba \
    FONTES_CACHE=/cache/fontes \
    HF_HOME=/cache/huggingface
USER 10001
WORKDIR /cache
VOLUME /cache
EXPOSE 8080
# Compilation, once, takes some fifteen seconds.
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8080/ready', timeout=4)"]
ENTRYPOINT ["fontes"]
CMD ["serve", "/index", "--host", "0.0.0.0"]
