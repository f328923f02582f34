# shellcheck shell=bash
#
# peers.sh - a docker daemon of our own and what runc, podman and docker run; sourced, not run
#
# Needs common.sh. Cgroups are made below one named after our pid; the daemon and its data live in
# $work. remove_cgroups and remove_mounts take back what is left.

readonly cgroup=sidebyside-$$ # not agentkernel-*: those are the product's own
readonly image=agentkernel-bench
dockerd_pid=

# The line of the last log that says most: the first with an error, else the last.
reason() {
	grep -i -m 1 error "$work/log" || tail -n 1 "$work/log"
}

# Removes our cgroups, in each hierarchy. conmon may take a moment to leave its own.
remove_cgroups() {
	local -a ours=(-depth -type d '(' -path "*/$cgroup" -o -path "*/$cgroup/*" ')')
	local left

	for _ in {1..50}; do
		find /sys/fs/cgroup "${ours[@]}" -exec rmdir {} + 2>/dev/null || true
		left=$(find /sys/fs/cgroup "${ours[@]}" 2>/dev/null || true)
		[[ -n $left ]] || return 0
		sleep 0.1
	done
	echo "could not remove: $left" >&2
}

remove_mounts() {
	local -a points
	local i

	mapfile -t points < <(
		awk -v dir="$work/" 'index($2, dir) == 1 { print $2 }' /proc/self/mounts
	)
	for ((i = ${#points[@]} - 1; i >= 0; i--)); do
		umount "${points[i]}" || true
	done
}

# The root file system that runc, podman and docker share.
make_rootfs() {
	local busybox

	busybox=$(installed busybox) || return 1
	mkdir -p "$work"/bundle/rootfs/{bin,dev,proc,sys,tmp}
	cp "$busybox" "$work/bundle/rootfs/bin/busybox"
	ln -s busybox "$work/bundle/rootfs/bin/true"
	ln -s busybox "$work/bundle/rootfs/bin/readlink"
	tar -C "$work/bundle/rootfs" -cf "$work/image.tar" .
}

# start_dockerd CLIENT...: starts a docker daemon of our own, and returns when it answers.
start_dockerd() {
	local dir=$work/docker

	mkdir "$dir"
	dockerd --data-root "$dir/data" --exec-root "$dir/exec" --pidfile "$dir/pid" \
		--host "unix://$dir/socket" --storage-driver overlay2 --bridge none \
		--iptables=false --ip6tables=false --ip-forward=false --ip-masq=false \
		--cgroup-parent "/$cgroup" --exec-opt native.cgroupdriver=cgroupfs \
		>"$dir/log" 2>&1 &
	dockerd_pid=$!
	for _ in {1..150}; do
		if "$@" version >/dev/null 2>&1; then
			return 0
		fi
		kill -0 "$dockerd_pid" 2>/dev/null || return 1
		sleep 0.1
	done
	return 1
}
