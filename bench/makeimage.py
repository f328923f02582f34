#!/usr/bin/env python3
"""makeimage - an OCI layout with an image of real files, for bench/images

usage: makeimage DIRECTORY MIB LAYERS [VARIANT]

MIB of files from this machine's /usr (libraries, scripts, headers: as well compressible as an image's),
spread over LAYERS gzip layers. With VARIANT the highest layer also holds a file of that text, so that it
alone differs from an image made without. Prints the size of the layers as they travel.
"""
import gzip
import hashlib
import io
import json
import os
import sys
import tarfile

FILE_MAX = 8 << 20


def plain_files():
    for root, folders, names in os.walk("/usr"):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(root, name)
            if os.path.isfile(path) and not os.path.islink(path) and os.path.getsize(path) < FILE_MAX:
                yield path


def add_blob(layout, content, media_type):
    digest = hashlib.sha256(content).hexdigest()
    with open(f"{layout}/blobs/sha256/{digest}", "wb") as blob:
        blob.write(content)
    return {"mediaType": media_type, "digest": "sha256:" + digest, "size": len(content)}


def make_layer(paths, limit, extra):
    archive = io.BytesIO()
    size = 0
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in paths:
            tar.add(path, arcname=path[1:], recursive=False)
            size += os.path.getsize(path)
            if size >= limit:
                break
        if extra:
            entry = tarfile.TarInfo("variant")
            entry.size = len(extra)
            tar.addfile(entry, io.BytesIO(extra.encode()))
    return archive.getvalue()


def main():
    layout, mib, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    variant = sys.argv[4] if len(sys.argv) > 4 else ""
    oci = "application/vnd.oci.image."
    layers, diff_ids = [], []
    os.makedirs(f"{layout}/blobs/sha256")
    paths = plain_files()
    for number in range(count):
        tar = make_layer(paths, (mib << 20) // count, variant if number == count - 1 else "")
        diff_ids.append("sha256:" + hashlib.sha256(tar).hexdigest())
        layers.append(add_blob(layout, gzip.compress(tar, 6, mtime=0), oci + "layer.v1.tar+gzip"))
    config = {"architecture": os.environ.get("ARCHITECTURE", "amd64"), "os": "linux", "config": {},
              "rootfs": {"type": "layers", "diff_ids": diff_ids}}
    config = add_blob(layout, json.dumps(config).encode(), oci + "config.v1+json")
    manifest = {"schemaVersion": 2, "mediaType": oci + "manifest.v1+json", "config": config, "layers": layers}
    entry = add_blob(layout, json.dumps(manifest).encode(), oci + "manifest.v1+json")
    entry["annotations"] = {"org.opencontainers.image.ref.name": "latest"}
    with open(f"{layout}/index.json", "w", encoding="utf-8") as index:
        json.dump({"schemaVersion": 2, "manifests": [entry]}, index)
    with open(f"{layout}/oci-layout", "w", encoding="utf-8") as marker:
        marker.write('{"imageLayoutVersion":"1.0.0"}')
    print(sum(layer["size"] for layer in layers) >> 20)


main()
