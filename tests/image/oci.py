"""oci.py: makes images for the tests, as an OCI layout in a directory.

    oci.py image LAYOUT NAME [--config JSON] [--architecture NAME] LAYER...
    oci.py index LAYOUT NAME ARCHITECTURE=NAME...

A layer is a tar, plain or compressed with gzip or zstd; its media type follows from its first
bytes. --config is the "config" object of the image's config: Env, Cmd and so on. An index names
images of the layout for several machines. Also imported by hostile.py, which bends what is made.
"""
import argparse
import gzip
import hashlib
import json
import os
import platform
import subprocess

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def machine():
    return ARCHITECTURES.get(platform.machine(), platform.machine())


def digest_of(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def read_compressed(data):
    """The media type's ending and the content of a layer."""
    if data[:2] == b"\x1f\x8b":
        return "+gzip", gzip.decompress(data)
    if data[:4] == b"\x28\xb5\x2f\xfd":
        done = subprocess.run(["zstd", "-dcq"], input=data, stdout=subprocess.PIPE, check=True)
        return "+zstd", done.stdout
    return "", data


class Layout:
    def __init__(self, path):
        self.path = path
        os.makedirs(os.path.join(path, "blobs", "sha256"), exist_ok=True)
        with open(os.path.join(path, "oci-layout"), "w", encoding="utf-8") as file:
            file.write('{"imageLayoutVersion":"1.0.0"}')

    def read_index(self):
        try:
            with open(os.path.join(self.path, "index.json"), encoding="utf-8") as file:
                return json.load(file)
        except FileNotFoundError:
            return {"schemaVersion": 2, "manifests": []}

    def add_blob(self, data, media_type):
        """Its descriptor."""
        digest = digest_of(data)
        with open(os.path.join(self.path, "blobs", "sha256", digest[7:]), "wb") as file:
            file.write(data)
        return {"mediaType": media_type, "digest": digest, "size": len(data)}

    def add_json(self, document, media_type):
        return self.add_blob(json.dumps(document).encode(), media_type)

    def add_name(self, name, descriptor):
        index = self.read_index()
        entry = dict(descriptor, annotations={"org.opencontainers.image.ref.name": name})
        index["manifests"].append(entry)
        with open(os.path.join(self.path, "index.json"), "w", encoding="utf-8") as file:
            json.dump(index, file)

    def find(self, name):
        for entry in self.read_index()["manifests"]:
            if entry["annotations"]["org.opencontainers.image.ref.name"] == name:
                return {key: entry[key] for key in ("mediaType", "digest", "size")}
        raise SystemExit(f"no {name} in {self.path}")

    def add_image(self, name, layers, config=None, architecture=None, bend_config=None, bend=None):
        """An image of layers, given as bytes. The bend functions may change the documents."""
        descriptors, diff_ids = [], []
        for data in layers:
            ending, content = read_compressed(data)
            descriptors.append(self.add_blob(data, LAYER + ending))
            diff_ids.append(digest_of(content))
        document = {
            "architecture": architecture or machine(),
            "os": "linux",
            "config": config or {},
            "rootfs": {"type": "layers", "diff_ids": diff_ids},
        }
        if bend_config:
            document = bend_config(document) or document
        add = self.add_blob if isinstance(document, bytes) else self.add_json
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": add(document, CONFIG),
            "layers": descriptors,
        }
        if bend:
            manifest = bend(manifest) or manifest
        add = self.add_blob if isinstance(manifest, bytes) else self.add_json
        self.add_name(name, add(manifest, MANIFEST))


def make_image(arguments):
    layers = []
    for path in arguments.layer:
        with open(path, "rb") as file:
            layers.append(file.read())
    config = json.loads(arguments.config)
    Layout(arguments.layout).add_image(arguments.name, layers, config, arguments.architecture)


def make_index(arguments):
    layout, manifests = Layout(arguments.layout), []
    for word in arguments.entry:
        architecture, _, name = word.partition("=")
        place = {"os": "linux", "architecture": architecture}
        manifests.append(dict(layout.find(name), platform=place))
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}
    layout.add_name(arguments.name, layout.add_json(index, INDEX))


def main():
    parser = argparse.ArgumentParser(description="see the top of this file")
    commands = parser.add_subparsers(required=True)
    image = commands.add_parser("image")
    image.add_argument("layout")
    image.add_argument("name")
    image.add_argument("--config", default="{}")
    image.add_argument("--architecture")
    image.add_argument("layer", nargs="+")
    image.set_defaults(run=make_image)
    index = commands.add_parser("index")
    index.add_argument("layout")
    index.add_argument("name")
    index.add_argument("entry", nargs="+")
    index.set_defaults(run=make_index)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
