PYTHON ?= python3
BIN := .venv/bin
export PYTHONDONTWRITEBYTECODE :=  # the processes that tests start would compile all that they import, each time
SEED := $(or $(SEED),$(shell date +%s))

.PHONY: demo test test-all bench docs dist clean

demo: .venv/demo  ## install and run the main job on real text
	$(BIN)/fontes demo

test: .venv/test  ## lint, types and tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tests/support/compile_loops.py & loops=$$!; \
	$(BIN)/mypy && $(BIN)/pytest -n 2 --dist loadgroup --no-loadscope-reorder -m "not slow"; status=$$?; wait $$loops && exit $$status

test-all: .venv/test  ## and the long ones, in random order, on new examples; SEED=N repeats a run
	$(BIN)/pytest -n 2 --dist loadgroup --random-order --random-order-seed=$(SEED) --hypothesis-profile=fresh --hypothesis-seed=$(SEED)

bench: .venv/test  ## speed beside tantivy and bm25s, and against docs/benchmarks.md, in two minutes
	$(BIN)/python bench/quick.py

docs: .venv/docs  ## the documentation as a site, in site/
	$(BIN)/mkdocs build --strict

dist:  ## the wheel and the sdist, in dist/, and the core's tests on the wheel without extras
	rm -rf dist .venv-dist
	$(PYTHON) -m venv .venv-dist
	.venv-dist/bin/pip install -q build
	.venv-dist/bin/python -m build -o dist
	.venv-dist/bin/pip install -q -c constraints.txt dist/*.whl pytest hypothesis
	.venv-dist/bin/pytest -m "not slow" tests/core tests/measures tests/text tests/lexical/test_models.py

.venv/demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q -c constraints.txt -e .
	touch $@

.venv/test: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q -c constraints.txt -e '.[test]'
	$(BIN)/pip install -q -c constraints.txt -e '.[annoy]' 2> /dev/null || echo "Annoy cannot be built here (it needs a C++ compiler); the tests with it are skipped"
	$(BIN)/python -m compileall -q src
	touch $@

.venv/docs: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q -c constraints.txt -e '.[docs]'
	touch $@

clean:
	rm -rf .venv .venv-dist dist site bench/.peers
