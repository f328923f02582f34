# A small root directory to make images from: a static busybox and a few system files.

# make_rootfs DIR
make_rootfs() {
	local root=$1 applet
	mkdir -p "$root"/{bin,sbin,etc,tmp,var/tmp,proc,sys,dev,root,run,home/app,usr/bin,opt} || return 1
	cp "$(command -v busybox)" "$root/bin/busybox" || return 1
	for applet in $("$root/bin/busybox" --list); do
		[ "$applet" = busybox ] || ln -sf busybox "$root/bin/$applet"
	done
	printf '%s\n' 'root:x:0:0:root:/root:/bin/sh' 'app:x:1234:1234:an app:/home/app:/bin/sh' \
		'user:x:1000:1000:user:/home/user:/bin/sh' \
		'nobody:x:65534:65534:nobody:/nonexistent:/bin/false' >"$root/etc/passwd"
	printf '%s\n' 'root:x:0:' 'app:x:1234:' 'user:x:1000:' 'extra:x:55:app' 'nogroup:x:65534:' >"$root/etc/group"
	chmod 755 "$root" "$root"/{bin,sbin,etc,var,proc,sys,dev,run,home,usr,usr/bin,opt,home/app}
	chmod 700 "$root/root"
	chmod 1777 "$root/tmp" "$root/var/tmp"
	[ "$(id -u)" -ne 0 ] || chown 1234:1234 "$root/home/app"
}
