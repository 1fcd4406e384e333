"""A registry of npm and one of PyPI with the packages of some folders, as far as `npx` and `pip` ask."""
import base64
import hashlib
import http.server
import json
import os
import tarfile
import threading


class Registry:
    """Serves on a free port of 127.0.0.1, and keeps the paths that were asked for."""

    def __init__(self, *folders):
        self.files, self.asked = {}, []
        for folder in folders:
            for name in os.listdir(folder):
                with open(os.path.join(folder, name), "rb") as file:
                    self.files[name] = file.read()
        self.manifests = {}
        for folder in folders:
            for name in filter(lambda name: name.endswith(".tgz"), os.listdir(folder)):
                with tarfile.open(os.path.join(folder, name)) as archive:
                    manifest = json.load(archive.extractfile("package/package.json"))
                self.manifests[manifest["name"]] = (name, manifest)
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                registry.asked.append(self.path)
                body, kind = registry.answer(self.path)
                self.send_response(404 if body is None else 200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body or b"")))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body or b"")

            do_HEAD = do_GET

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{server.server_port}"

    def answer(self, path):
        name = path.split("?")[0].strip("/")
        if name in self.manifests:
            return self.packument(name), "application/json"
        if name == "simple/creole-gateway":
            wheels = [file for file in self.files if file.endswith(".whl")]
            return "".join(f'<a href="/files/{file}">{file}</a>\n' for file in wheels).encode(), "text/html"
        return self.files.get(name.removeprefix("files/")), "application/octet-stream"

    def packument(self, name):
        file, manifest = self.manifests[name]
        digest = base64.b64encode(hashlib.sha512(self.files[file]).digest()).decode()
        dist = {"tarball": f"{self.url}/files/{file}", "integrity": f"sha512-{digest}"}
        version = manifest["version"]
        return json.dumps({
            "name": name, "dist-tags": {"latest": version}, "versions": {version: {**manifest, "dist": dist}},
        }).encode()

    def downloads(self):
        """The files that were downloaded since the last look."""
        files = sorted({path.removeprefix("/files/") for path in self.asked if path.startswith("/files/")})
        self.asked.clear()
        return files
