# Every command sets up what it needs: make run, make test, make check; make help lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One file of exact versions for every install; pip reads this variable, also when it builds.
export PIP_CONSTRAINT := constraints.txt
# A process that a hanging test took with it is not replaced: xdist would begin the same test again.
PYTEST := $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadscope \
	--max-worker-restart 0
export PIP_DISABLE_PIP_VERSION_CHECK := 1

SECONDS := 600
PROCESSES := 2
KILLS := 300
KILLS_ON_RAY := 30

.PHONY: run paper federation federation-tls federation-race test test-quick soak soak-kills fuzz check format bench docs dist clean help

run: $(VENV)/.package  ## the five rules of the paper on Synthetic-1-1, a table and a plot
	$(BIN)/asyncfeded compare --task synthetic-1-1 --seconds 150 --suspension 0.1 --widths 64,32 \
		--workers 2 --out runs/synthetic-1-1 --overwrite

paper: $(VENV)/.paper  ## the paper's report from the stored runs: paper/results/report.html
	$(BIN)/asyncfeded paper --scale full --report-only --figure 1 --figure 2 --figure 3 --seeds 3 \
		--out paper/results

federation: $(VENV)/.flower  ## four hospitals on this machine train asynchronously, on Flower
	$(BIN)/python examples/flower/start.py --overwrite

federation-tls: $(VENV)/.flower  ## the same with certificates and registered keys
	$(BIN)/python examples/flower/start.py --overwrite --tls

federation-race: $(VENV)/.flower  ## an ordinary Flower app: FedAvg, and our server with its clients
	$(BIN)/python examples/flower/race.py

test: $(VENV)/.dev  ## the tests
	$(PYTEST)

test-quick: $(VENV)/.dev  ## the tests without the slow ones, in less than a minute
	$(PYTEST) -m "not slow"

soak: $(VENV)/.dev  ## simulate faults of disk and network: SECONDS=600 long, or EVENTS=10000000 of them
	cd tests && ../$(BIN)/python -m faults --processes $(PROCESSES) --seconds $(SECONDS) \
		$(if $(EVENTS),--events $(EVENTS))

fuzz: $(VENV)/.fuzz  ## give every reader of outside bytes what nobody wrote, for SECONDS=600
	cd tests && ../$(BIN)/python -m fuzz --seconds $(SECONDS)

soak-kills: $(VENV)/.dev  ## kill real processes at any moment, KILLS=300 of them, and let them go on
	cd tests && ../$(BIN)/python -m kills --kills $(KILLS)
	cd tests && ../$(BIN)/python -m kills --kills $(KILLS) --on real
	cd tests && ../$(BIN)/python -m kills --kills $(KILLS_ON_RAY) --on ray

check: $(VENV)/.dev  ## format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	cd paper && $(CURDIR)/$(BIN)/mypy

format: $(VENV)/.dev  ## rewrite the code in the project's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.package  ## the engine's cost, as ratios in one run
	$(BIN)/python benchmarks/engine.py

docs: $(VENV)/.docs  ## the documentation as a site, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

dist: $(VENV)/.dev  ## a wheel and an sdist, in dist/
	$(BIN)/python -m build --no-isolation

clean:  ## remove the virtual environments, the results of runs and what was built
	rm -rf $(VENV) .peers runs site dist

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/:/'

$(VENV)/.package: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "asyncfeded needs Python 3.11 or newer; this is " + sys.version.split()[0] + ": run make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable '.[torch]'
	touch $@

$(VENV)/.paper: $(VENV)/.package paper/pyproject.toml
	$(BIN)/pip install --quiet --editable ./paper
	touch $@

$(VENV)/.flower: $(VENV)/.package
	$(BIN)/pip install --quiet --editable '.[flower,torch]'
	touch $@

$(VENV)/.dev: $(VENV)/.package $(VENV)/.paper
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@

$(VENV)/.fuzz: $(VENV)/.dev
	$(BIN)/pip install --quiet --editable '.[fuzz]'
	touch $@

$(VENV)/.docs: $(VENV)/.package
	$(BIN)/pip install --quiet --editable '.[docs]'
	touch $@
