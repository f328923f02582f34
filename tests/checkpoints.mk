# Checkpoints under load: included by the Makefile.
#
#   make check-checkpoints  as root and as an ordinary user: COUNT checkpoints of a sandbox whose programs
#                           write all the time, each restored and verified, with kill -9 in between;
#                           and ROUNDS of random changes, each checkpoint compared with its source

COUNT ?= 200
ROUNDS ?= 60
.PHONY: check-checkpoints
check-checkpoints: all
	@BUILD=$(abspath $(BUILD)) tests/named/checkpoints $(COUNT) $(ROUNDS)
