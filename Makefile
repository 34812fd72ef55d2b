# `make help` lists the targets.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# What runs is compiled to bytecode as it is imported, which is a small part of what is installed.
PIP     = $(BIN)/pip install --quiet --disable-pip-version-check --no-compile
DISTS  := libs/common libs/operations services/watcher services/translator services/gateway services/console cli
STAMP  := $(VENV)/.installed
TOOLS  := $(VENV)/.tools
OTHER  := $(VENV)/other
ENGINE := services/gateway/headgate/gateway/compiled.json
# Most tests of services wait more than they work: four at once fill two cores. Those of one file stay together.
BESIDE := -n 4 --dist loadfile
# What `make coverage` runs: unit tests of the cores and of the commands that use them, and what tries stores and gateway on real
# servers and sockets.
MEASURED := $(addprefix tests/unit/,common operations translator gateway cli) $(addprefix tests/integration/,common gateway)
HOT    := $(shell find services/gateway/headgate/gateway -name '*.py')

# Tests and benches start hundreds of processes: without cached bytecode each compiles all its sources again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install accelerate up stack stack-down stack-test test python-test async-test coverage cluster-test conformance soak shortage check crds manifests validate format lock bench release wheel clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(ENGINE) $(TOOLS) ## Make .venv with everything that development needs

# The first line runs on any Python, to say which one is needed.
$(STAMP): requirements.lock $(DISTS:%=%/pyproject.toml)
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; v >= (3, 11) or sys.exit("Headgate needs Python 3.11 or newer, \
	$(PYTHON) is %d.%d. Name another one: make $(MAKECMDGOALS) PYTHON=python3.13" % v)'
	@echo "[1/3] making $(VENV) and installing the libraries in it (about a minute)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --no-deps --require-hashes -r requirements.lock
	@echo "[2/3] installing Headgate in $(VENV) (seconds)"
	@$(PIP) --no-deps --no-build-isolation $(DISTS:%=-e %)
	@touch $@

$(TOOLS): $(STAMP) requirements-dev.lock
	@echo "installing the tools of development in $(VENV) (about half a minute)"
	@$(PIP) --require-hashes -r requirements-dev.lock
	@touch $@

accelerate: $(ENGINE) ## Compile the gateway's proxy, if there is a C compiler and its sources have changed

$(ENGINE): $(STAMP) services/gateway/hatch_build.py services/gateway/mypyc.ini $(HOT)
	@echo "[3/3] compiling the proxy, where it is not compiled yet (one to two minutes)"
	@$(BIN)/python services/gateway/hatch_build.py

up: $(STAMP) ## Serve examples/quickstart on ports 8080 and 8443, with two demo backends; compile the proxy beside it
	@$(BIN)/python examples/make_certificate.py examples/quickstart secure.localhost
	@$(BIN)/python services/gateway/hatch_build.py --beside & exec $(BIN)/headgate up --manifests examples/quickstart \
		--demo-backend red=9101 --demo-backend blue=9102

stack: ## Build the images and serve examples/stack from containers; PROFILES=redis,metrics and GATEWAYS=3 say more
	@PROFILES='$(PROFILES)' GATEWAYS='$(GATEWAYS)' deploy/stack/start

stack-down: ## End the containers, and remove what they stored
	@deploy/stack/compose --profile redis --profile kubeconfig --profile metrics --profile prometheus --profile cli down --volumes --remove-orphans

stack-test: $(TOOLS) ## Try the images and the stack under load: scale it, kill each container, exchange releases; needs docker
	$(BIN)/pytest $(addprefix tests/stack/,images.py traffic.py dashboards.py kubeconfig.py upgrade.py) -s

test: $(ENGINE) $(TOOLS) ## Run all tests, and those of the proxy a second time on its sources
	$(BIN)/pytest $(BESIDE)
	HEADGATE_ENGINE=pure $(BIN)/pytest $(BESIDE) $(addprefix tests/unit/gateway/,proxy table balancing plugins/runtime) \
		tests/unit/gateway/test_engine.py $(wildcard tests/integration/gateway/served/test_*.py) tests/fuzz

python-test: ## Run unit tests on another Python, in a copy of what is committed: PYTHON=python3.13; pytest's own in ARGS
	rm -rf $(OTHER) && mkdir -p $(VENV) && git clone --quiet --shared . $(OTHER)
	$(MAKE) -C $(OTHER) install PYTHON=$(PYTHON)
	cd $(OTHER) && $(BIN)/pytest $(BESIDE) $(or $(ARGS),tests/unit)

async-test: $(ENGINE) $(TOOLS) ## Run tests of what waits and follows with asyncio's own checks
	PYTHONASYNCIODEBUG=1 $(BIN)/pytest $(BESIDE) tests/unit/watcher/kubernetes tests/unit/translator/leading tests/unit/translator/status \
		tests/unit/gateway/health tests/unit/gateway/test_following.py \
		$(addprefix tests/unit/common/,leadership/test_leadership.py service/test_service.py service/test_tasks.py \
		stores/test_collecting.py stores/test_following_pointers.py)

coverage: $(TOOLS) ## Measure what tests reach of the cores, branches included; fails if one is below its floor in .ci/floors.py
	$(BIN)/coverage erase
	@# A few tests are about pace, which coverage slows down: `make test` judges them.
	-HEADGATE_ENGINE=pure $(BIN)/coverage run -m pytest $(BESIDE) $(MEASURED)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --skip-covered --show-missing --sort cover
	$(BIN)/python .ci/floors.py

cluster-test: $(ENGINE) $(TOOLS) ## Run tests on the cluster that KUBECONFIG names, in namespaces of their own; says what was left out
	@test -n "$(KUBECONFIG)" || { echo "name a cluster: make cluster-test KUBECONFIG=file" >&2; exit 2; }
	KUBECONFIG="$(KUBECONFIG)" $(BIN)/pytest --timeout 900 tests/cluster tests/integration/watcher/kubernetes/test_kubernetes_cluster.py $(ARGS)

conformance: $(ENGINE) $(TOOLS) ## Run the conformance suite of Gateway API on the cluster that KUBECONFIG names; its flags in ARGS; needs Go and root
	tests/cluster/gateway_api/conformance build
	tests/cluster/gateway_api/conformance run /var/tmp/gateway-api $(ARGS)

soak: $(ENGINE) $(TOOLS) ## Break everything at random for MINUTES=20 while it serves; SEED=... draws the same faults again
	FAULT_MINUTES=$(or $(MINUTES),20) FAULT_SEED=$(SEED) $(BIN)/pytest tests/faults/soak.py $(if $(SHAPE),-k $(SHAPE)) -s

shortage: $(ENGINE) ## Take CPU from everything but the gateways: SHARE=0.1 of a core each, INGRESSES=10000
	INGRESSES=$(INGRESSES) SHARE=$(SHARE) $(BIN)/pytest tests/faults/shortage.py -s

check: $(TOOLS) ## Everything that is checked without running: format, lint, types, layers, spelling, licences
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy libs/common/headgate libs/operations/headgate services/watcher/headgate services/translator/headgate services/gateway/headgate services/console/headgate cli/headgate bench
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/python -m headgate.translator.crds --check crds
	$(BIN)/python -m deploy.manifests.rights --check
	$(BIN)/python deploy/manifests/render.py --check
	$(BIN)/python -m deploy.manifests.setting_names --check
	$(BIN)/python .ci/licences.py

crds: $(STAMP) ## Write crds/ as the models of the resources have it
	$(BIN)/python -m headgate.translator.crds crds

manifests: $(STAMP) ## Write the rights to all kinds that are read, and deploy/manifests/ as the chart has it, with helm or what HELM names
	$(BIN)/python -m deploy.manifests.rights
	$(BIN)/python deploy/manifests/render.py

validate: $(STAMP) ## Validate what the chart renders with all its options: with kubeconform, helm or what KUBECONFORM and HELM name
	$(BIN)/python -m deploy.manifests.validate

bench: $(ENGINE) $(TOOLS) ## Measure beside nginx, HAProxy and Envoy; ARGS='--quick' is short, ARGS=--help says more
	$(BIN)/python -m bench $(ARGS)

format: $(TOOLS) ## Format the code and mend what the linter can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: $(TOOLS) ## Resolve the requirements*.in files to their lock files
	for name in requirements requirements-dev deploy/release/requirements; do \
		$(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url \
			--no-emit-find-links --no-emit-trusted-host --no-header --output-file $$name.lock $$name.in || exit; done

release: $(TOOLS) ## Build wheels, chart, images, bill of materials and kubectl plugin into dist/; KEY=... signs them
	$(BIN)/python -m deploy.release make $(if $(KEY),--signing-key $(KEY)) $(ARGS)

wheel: $(TOOLS) ## Build the gateway's wheel with the compiled proxy into dist/, install it in a new environment and try it
	$(BIN)/python -m deploy.release wheel $(ARGS)

clean: ## Remove the virtual environment and local state
	rm -rf $(VENV) .headgate
