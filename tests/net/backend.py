"""backend.py GIT-ROOT: what nginx passes on: uploads, git over HTTP, and two package registries
with one package each, made here. Listens on 127.0.0.1:8000 of the world's net side."""
import base64
import hashlib
import http.server
import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import common  # noqa: E402

GIT_ROOT = sys.argv[1]


def make_wheel():
    files = {
        "tinypkg.py": b"WORD = 'from the wheel'\n",
        "tinypkg-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: tinypkg\nVersion: 1.0\n",
        "tinypkg-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    files["tinypkg-1.0.dist-info/RECORD"] = (record + "tinypkg-1.0.dist-info/RECORD,,\n").encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name, data in files.items():
            z.writestr(name, data)
    return out.getvalue()


def make_tarball():
    files = {
        "package/package.json": b'{"name":"tinynpm","version":"1.0.0","main":"index.js"}',
        "package/index.js": b"module.exports = 'from the tarball'\n",
    }
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o644
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


WHEEL, TARBALL = make_wheel(), make_tarball()
WHEEL_NAME = "tinypkg-1.0-py3-none-any.whl"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    def log_message(self, *_):
        pass

    def reply(self, data, kind="text/plain", status=200):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def do_POST(self):
        if self.path.startswith("/git/"):
            return self.git()
        data = self.body()
        self.reply(b"%d %s\n" % (len(data), hashlib.sha256(data).hexdigest().encode()))

    def do_GET(self):
        base = "http://" + self.headers.get("Host", "")
        if self.path.startswith("/git/"):
            self.git()
        elif self.path == "/simple/tinypkg/":
            digest = hashlib.sha256(WHEEL).hexdigest()
            self.reply(f"<a href='/files/{WHEEL_NAME}#sha256={digest}'>{WHEEL_NAME}</a>".encode(), "text/html")
        elif self.path == f"/files/{WHEEL_NAME}":
            self.reply(WHEEL, "application/octet-stream")
        elif self.path == "/npm/tinynpm":
            integrity = "sha512-" + base64.b64encode(hashlib.sha512(TARBALL).digest()).decode()
            version = {"name": "tinynpm", "version": "1.0.0",
                       "dist": {"tarball": base + "/npm/tinynpm/-/tinynpm-1.0.0.tgz", "integrity": integrity}}
            self.reply(json.dumps({"name": "tinynpm", "dist-tags": {"latest": "1.0.0"},
                                   "versions": {"1.0.0": version}}).encode(), "application/json")
        elif self.path == "/npm/tinynpm/-/tinynpm-1.0.0.tgz":
            self.reply(TARBALL, "application/octet-stream")
        else:
            self.reply(b"nothing here\n", status=404)

    def git(self):
        """git http-backend, by CGI"""
        path, _, query = self.path[len("/git"):].partition("?")
        env = {
            "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": GIT_ROOT, "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": self.command, "PATH_INFO": path, "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""), "REMOTE_ADDR": "192.0.2.1",
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        body = self.body() if self.command == "POST" else b""
        env["CONTENT_LENGTH"] = str(len(body))
        out = subprocess.run(["git", "http-backend"], input=body, env=env, stdout=subprocess.PIPE, check=False).stdout
        head, _, rest = out.partition(b"\r\n\r\n")
        fields = [line.split(": ", 1) for line in head.decode().split("\r\n")]
        status = next((int(v.split()[0]) for k, v in fields if k == "Status"), 200)
        self.send_response(status)
        for k, v in fields:
            if k != "Status":
                self.send_header(k, v)
        self.end_headers()
        self.wfile.write(rest)


def main():
    os.makedirs(GIT_ROOT, exist_ok=True)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 8000), Handler)
    common.ready()
    server.serve_forever()


main()
