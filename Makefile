# The two commands of a newcomer: make demo, make test. Both do all the set-up.
.PHONY: demo test test-long lab lab-no-stacks lab-full lint format cluster-up cluster-down golden clean

demo:
	@.ci/venv run
	@.venv/bin/python -m slurmtop demo

# The tests of the pure rooms and the screens, and at the same time the ones against a real Slurm as
# a normal user.
test:
	@.ci/venv dev
	@tests/run

# What waits for minutes (drivers that hang, steps that run out), against a real Slurm.
test-long:
	@.ci/venv dev
	@tests/cluster/run -q -m "cluster and long" tests

# Real trainings with a fault each, and whether it is found: see tests/lab/README.md. Rows that are
# in the file already are not made again.
LAB_ROWS ?= lab-rows.jsonl

lab lab-no-stacks lab-full: cluster-up
	@.ci/venv dev
	python3 -m tests.lab run --out $(LAB_ROWS) $(if $(findstring no-stacks,$@),--no-stacks) \
		$(if $(findstring full,$@),--full)
	@.venv/bin/python -m tests.lab score $(LAB_ROWS)

lint:
	@.ci/venv dev
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

format:
	@.ci/venv dev
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

golden:
	@.ci/venv dev
	.venv/bin/python -m pytest -q -m "not cluster" tests --update-golden

cluster-up:
	@python3 -m tests.cluster install && python3 -m tests.cluster up

cluster-down:
	@python3 -m tests.cluster down

clean:
	rm -rf .venv build dist
