"""hostile.py: images that want more than they may, and their harmless neighbours.

    hostile.py make DIR CANARY     one OCI layout in DIR/CASE for each case, its image called "x:1"
    hostile.py serve DIR           as a registry would: GET /v2/CASE/manifests/1, /v2/CASE/blobs/...

CANARY is a directory outside of any store; what links and names lead to is in it. The server is for
documents that a real registry does not take: it says its port and runs until it is killed.
"""
import gzip
import http.server
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile

import oci

UP = "../" * 24


# ---- layers ----


def entry(name, kind=tarfile.REGTYPE, data=b"", **fields):
    info = tarfile.TarInfo(name)
    info.type, info.size, info.mtime = kind, len(data), 1700000000
    info.mode = 0o755 if kind == tarfile.DIRTYPE else 0o644
    for key, value in fields.items():
        setattr(info, key, value)
    return info, data


def link(name, target):
    return entry(name, tarfile.SYMTYPE, linkname=target)


def hard(name, target):
    return entry(name, tarfile.LNKTYPE, linkname=target)


def device(name, kind, major, minor):
    return entry(name, kind, devmajor=major, devminor=minor)


def directory(name, **fields):
    return entry(name, tarfile.DIRTYPE, **fields)


def tar(*entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for info, data in entries:
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def bend_header(archive, at, value):
    """Other bytes in the first header, and the checksum that goes with them."""
    head = bytearray(archive[:512])
    head[at : at + len(value)] = value
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head) + archive[512:]


def sparse(size):
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "sparse")
        with open(path, "wb") as file:
            file.truncate(size)
        command = ["tar", "-C", place, "-S", "--format=posix", "-c", "sparse"]
        return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout


def zstd(data):
    return subprocess.run(["zstd", "-q", "-19", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


def compressed_zeros(compress, size, block=16 << 20):
    """A file of so many zeros, of which little is left: a stream of equal parts."""
    head = tar(entry("zeros", data=b""))[:512]
    head = bend_header(head, 124, b"%011o\0" % size)
    return compress(head) + compress(bytes(block)) * (size // block) + compress(bytes(1024))


def many(count):
    """So many entries, each of which means nothing. The same piece again and again, for speed."""
    piece = b"".join(tar(entry(".wh..wh." + os.urandom(16).hex()))[:512] for _ in range(4096))
    return gzip.compress(piece) * (count // 4096) + gzip.compress(bytes(1024))


def chain(count):
    return [link(f"l{n}", f"l{n + 1}") for n in range(count)]


def at_canary(name):
    """All that can be done to a directory, with a file in it."""
    return [
        entry(name + "/file", data=b"mine\n"),
        directory(name + "/new", mode=0o700),
        link(name + "/link", "/"),
        entry(name + "/.wh.gone"),
        entry(name + "/.wh..wh..opq"),
        hard("hard", name + "/file"),
        hard(name + "/hard", "hard"),
    ]


def layers(canary):
    """Case: the layers of an image."""
    out = os.path.join(canary, "file")
    climb = UP + out[1:]
    dots = UP + canary[1:]
    through = link("out", canary)
    base = [directory("etc"), entry("etc/plain", data=b"plain\n")]
    return {
        # names
        "name-climbs": [tar(entry(climb, data=b"bad"))],
        "name-climbs-inside": [tar(*base, entry("etc/../" + climb, data=b"bad"))],
        "name-absolute-climbs": [tar(entry("/" + climb, data=b"bad"))],
        "name-with-escapes": [tar(entry("../\x1b[31mred\nline", data=b"bad"))],
        "name-long": [tar(entry("n" * 256))],
        "name-deep": [tar(entry("d/" * 600 + "f"))],
        "name-longest": [tar(entry("abcdefgh/" * 500 + "f"))],
        # links
        "links-in-a-circle": [tar(link("a", "b"), link("b", "/a"), entry("a/file", data=b"bad"))],
        "links-too-many": [tar(*chain(41), entry("l0/file", data=b"bad"))],
        "link-to-whiteout": [tar(link("out", ".wh.x"), entry("out/file", data=b"bad"))],
        "link-to-file": [tar(*base, link("out", "etc/plain"), entry("out/file", data=b"bad"))],
        "link-too-deep": [tar(link("a", "d/" * 400), link("b", "a/" + "e/" * 400), entry("b/file"))],
        "link-too-long": [tar(link("a", "nnnnnnnnn/" * 400), link("a/a", "m" * 200), entry("a/a/file"))],
        "hard-link-climbs": [tar(hard("x", climb))],
        "hard-link-absolute": [tar(hard("x", out))],
        "hard-link-through-link": [tar(through, hard("x", "out/file"))],
        "hard-link-to-directory": [tar(directory("d"), hard("x", "d"))],
        "hard-link-to-nothing": [tar(hard("x", "nothing"))],
        "hard-link-below": [tar(*base), tar(hard("x", "etc/plain"))],
        # devices
        "device-in-etc": [tar(device("etc/null", tarfile.CHRTYPE, 1, 3))],
        "block-device": [tar(device("disk", tarfile.BLKTYPE, 8, 0))],
        "device-0-0": [tar(device("dev/zero", tarfile.CHRTYPE, 0, 0))],
        # sizes
        "sparse-huge": [sparse(65 << 30)],
        "bomb": [compressed_zeros(zstd, 2 << 30)],
        "bomb-gzip": [compressed_zeros(gzip.compress, 6 << 30)],
        "good-zeros": [compressed_zeros(gzip.compress, 256 << 20)],
        "entries": [many((4 << 20) + 4096)],
        "size-huge": [bend_header(tar(entry("big", data=b"x")), 124, b"\x80" + b"\x7f" * 11)],
        "size-negative": [bend_header(tar(entry("big", data=b"x")), 124, b"\xff" * 12)],
        "size-too-long": [bend_header(tar(entry("big", data=b"x")), 124, b"%011o\0" % 9999)],
        "owner-too-high": [tar(entry("x", uid=70000))],
        "cut-off": [gzip.compress(tar(*base))[:-20]],
        "wrong-checksum": [gzip.compress(tar(*base))[:-8] + b"\1\2\3\4\0\0\0\0"],
        "trailing": [tar(*base) + b"something"],
        "no-archive": [b"this is no archive at all, but it is long enough" * 40],
        # whiteouts
        "whiteout-nothing": [tar(entry(".wh."))],
        "whiteout-dot": [tar(entry("etc/.wh.."))],
        "whiteout-dots": [tar(entry("etc/.wh..."))],
        "whiteout-beneath": [tar(entry("etc/.wh.x/file"))],
        "whiteout-climbs": [tar(entry(UP + ".wh.file"))],
        # would touch the canary if the layer were not the root
        "inside-absolute": [tar(directory("/"), entry(out, data=b"mine\n"))],
        "inside-link": [tar(through, *at_canary("out"))],
        "inside-dots": [tar(link("out", dots), *at_canary("out"))],
        "inside-links": [tar(link("up", UP), link("way", "up" + canary), *at_canary("way"))],
        "inside-swapped": [
            tar(directory("out"), entry("out/a"), link("out", "etc"), entry("out/b"), through, *at_canary("out"))
        ],
        # similar valid ones
        "good-dot-slash": [tar(directory("./"), directory("./etc"), entry("./etc/plain", data=b"plain\n"))],
        "good-links": [tar(*base, link("out", canary), link("up", dots), link("loop", "loop"))],
        "good-link-replaced": [tar(through, directory("out"), entry("out/file", data=b"mine\n"))],
        "good-hard-links": [tar(*base, hard("x", "etc/plain"), hard("y", "/etc/plain"))],
        "good-devices": [tar(*base, device("dev/null", tarfile.CHRTYPE, 1, 3), entry("dev/file"))],
        "good-setuid": [tar(entry("su", data=b"#!/bin/sh\n", mode=0o6755), entry("plain", mode=0o600))],
        "good-sparse": [sparse(1 << 30)],
        "good-overlay-attributes": [
            tar(
                *base,
                directory("lower"),
                directory("lower/dir"),
                entry("lower/dir/file", data=b"lower\n"),
            ),
            tar(
                directory("lower"),
                directory(
                    "lower/dir",
                    pax_headers={
                        "SCHILY.xattr.user.overlay.opaque": "y",
                        "SCHILY.xattr.user.overlay.redirect": "/etc",
                        "SCHILY.xattr.trusted.overlay.opaque": "y",
                        "SCHILY.xattr.user.mine": "kept",
                    },
                ),
            ),
        ],
        "good-whiteouts": [
            tar(*base, directory("gone"), entry("gone/file")),
            tar(entry(".wh.gone"), entry("etc/.wh.nothing"), entry(".wh..wh.plnk/x")),
        ],
        "good-owner": [tar(entry("x", uid=65534, gid=65534))],
    }


# ---- documents ----


def with_fields(**fields):
    def bend(document):
        document.update(fields)

    return bend


def with_layer(**fields):
    def bend(document):
        document["layers"][0].update(fields)

    return bend


def process(**fields):
    return lambda document: document["config"].update(fields)


def deep(_):
    return b"[" * 100000


def deep_inside(document):
    text = json.dumps(document).encode()
    return text[:-1] + b',"deep":' + b"[" * 100000 + b"]" * 100000 + b"}"


def twice(document):
    return json.dumps(document).encode()[:-1] + b',"layers":[]}'


def long(document):
    document["padding"] = "x" * (4 << 20)


def without(key):
    return lambda document: document.pop(key) and None


def is_index_too(document):
    document["manifests"] = []


def absent_layer(document):
    document["layers"][0]["digest"] = "sha256:" + "0" * 64


def many_layers(document):
    document["layers"] *= 128


# Case: how the manifest is changed
MANIFESTS = {
    "manifest-deep": deep,
    "manifest-deep-inside": deep_inside,
    "manifest-twice": twice,
    "manifest-long": long,
    "manifest-not-json": lambda _: b"\xff\xfe{}",
    "manifest-list": lambda _: b"[]",
    "manifest-no-layers": without("layers"),
    "manifest-empty-layers": with_fields(layers=[]),
    "manifest-layers-text": with_fields(layers="all of them"),
    "manifest-layer-number": with_fields(layers=[7]),
    "manifest-no-config": without("config"),
    "manifest-config-list": with_fields(config=[]),
    "manifest-artifact": lambda d: d["config"].update(mediaType="application/vnd.cncf.helm.config.v1+json"),
    "manifest-size-text": with_layer(size="12"),
    "manifest-size-negative": with_layer(size=-1),
    "manifest-size-huge": with_layer(size=1 << 50),
    "manifest-size-wrong": with_layer(size=1),
    "manifest-digest-climbs": with_layer(digest="sha256:../../../../etc/passwd"),
    "manifest-digest-other": with_layer(digest="sha512:" + "0" * 128),
    "manifest-layer-absent": absent_layer,
    "manifest-many-layers": many_layers,
    "manifest-two-layers": lambda d: d["layers"].append(d["layers"][0]),
    "manifest-foreign": with_layer(mediaType="application/vnd.oci.image.layer.nondistributable.v1.tar"),
    "manifest-encrypted": with_layer(mediaType=oci.LAYER + "+encrypted"),
    "manifest-index-too": is_index_too,
    "manifest-schema-1": with_fields(schemaVersion=1),
}

# Case: how the config is changed
CONFIGS = {
    "config-deep": deep,
    "config-deep-inside": deep_inside,
    "config-env-number": process(Env=["A=b", 7]),
    "config-env-text": process(Env="A=b"),
    "config-env-no-name": process(Env=["=b"]),
    "config-env-no-sign": process(Env=["A"]),
    "config-env-nul": process(Env=["A=b\0c"]),
    "config-env-megabyte": process(Env=[f"V{n}=" + "x" * 1000 for n in range(1000)]),
    "config-env-long": process(Env=["A=" + "x" * 200000]),
    "config-env-many": process(Env=[f"V{n}=" for n in range(1025)]),
    "config-cmd-text": process(Cmd="sh"),
    "config-entrypoint-object": process(Entrypoint={}),
    "config-user-number": process(User=0),
    "config-list": with_fields(config=[]),
    "config-other-machine": with_fields(architecture="m68k"),
    "config-other-system": with_fields(os="windows"),
    "config-no-rootfs": without("rootfs"),
    "config-diff-id": lambda d: d["rootfs"].update(diff_ids=["sha256:" + "1" * 64]),
    "config-diff-id-text": lambda d: d["rootfs"].update(diff_ids=["../../x"]),
}


def make(place, canary):
    good = tar(directory("etc"), entry("etc/plain", data=b"plain\n"))
    cheap = {"bomb", "bomb-gzip", "entries", "cut-off", "wrong-checksum", "no-archive"}  # refused before their diff id is checked, which is wrong here
    for case, archives in layers(canary).items():
        layout = oci.Layout(os.path.join(place, case))
        if case in cheap:
            layout.add_image("x:1", [b""], bend=replace_layer(layout, archives[0]))
        else:
            layout.add_image("x:1", archives)
    for case, bend in MANIFESTS.items():
        oci.Layout(os.path.join(place, case)).add_image("x:1", [good], bend=bend)
    for case, bend in CONFIGS.items():
        oci.Layout(os.path.join(place, case)).add_image("x:1", [good], bend_config=bend)


def replace_layer(layout, data):
    """A layer that this program would not like to decompress itself."""
    kind = {b"\x1f\x8b": "+gzip", b"\x28\xb5": "+zstd"}.get(data[:2], "")
    return lambda document: document.update(layers=[layout.add_blob(data, oci.LAYER + kind)])


# ---- the server ----


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        parts = self.path.split("/")  # "", v2, CASE, manifests|blobs, NAME
        data, kind = b"", oci.MANIFEST
        try:
            if len(parts) == 5:
                place = os.path.join(self.server.place, parts[2])
                name = parts[4]
                if not name.startswith("sha256:"):
                    name = oci.Layout(place).find("x:1")["digest"]
                with open(os.path.join(place, "blobs", "sha256", name[7:]), "rb") as file:
                    data = file.read()
            self.send_response(200)
        except OSError:
            self.send_response(404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def serve(place):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.place = place
    print(f"127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


{"make": make, "serve": serve}[sys.argv[1]](*sys.argv[2:])
