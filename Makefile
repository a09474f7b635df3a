# The two commands of a newcomer: make demo, make test. Both do all the set-up.
.PHONY: demo test test-long lint format cluster-up cluster-down golden clean

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
