#!/usr/bin/env bats
# The README's tour, word for word.

load helpers

@test "the README's tour says what happens" {
	only_host
	mkdir -p "$W/tour/data" "$W/bin"
	echo 'int main(void) { return 0; }' >"$W/tour/t.c"
	: >"$W/tour/data/numbers"
	ln -s "$AK" "$W/bin/agentkernel"
	chmod -R a+rwX "$W"
	[ "${AS:-root}" != user ] || chown -R 12345:12345 "$W"
	cd "$W/tour"
	exec 9>/tmp/agentkernel-test-readme.lock
	flock 9 # the tour uses a fixed port, and this test may run at the same time as another caller
	python3 -m http.server --bind 127.0.0.1 8000 --directory "$W/bin" >/dev/null 2>&1 3>&- 9>&- &
	server=$!
	for _ in $(seq 50); do
		curl -s -o /dev/null http://127.0.0.1:8000/ && break
		sleep 0.1
	done
	result=0
	as env PATH="$W/bin:$PATH" python3 "$TOP/tests/cli/readme.py" "$TOP/README.md" "A tour" "Sandboxes that stay" >"$W/out" 2>&1 3>&- 9>&- || result=$?
	kill "$server"
	exec 9>&-
	for name in otter try-1 try-2; do
		ak remove -f "$name"
	done
	[ "$result" -eq 0 ] || { cat "$W/out"; false; }
}
