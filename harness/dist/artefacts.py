"""What `cargo xtask dist` made: each binary that this machine can run serves a request, from each package.

    artefacts.py ROOT DIST ZIG

Linux x64 runs as it is, Linux arm64 under qemu, Windows under Wine. Binaries for macOS are only parsed. Nothing is
installed into this machine: packages go into folders, in which a program sees nothing else (chroot).
"""

import base64
import contextlib
import hashlib
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import tomllib
import zipfile
from pathlib import Path

import mach_o

ROOT, DIST, ZIG = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
VERSION = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M)[1]
QEMU = "qemu-aarch64-static"
LINUX = {"amd64": "x86_64-unknown-linux-musl", "arm64": "aarch64-unknown-linux-musl"}
MACOS = ["aarch64-apple-darwin", "x86_64-apple-darwin"]
WINDOWS = "x86_64-pc-windows-gnu"
INSTALL = "apt-get install qemu-user-static wine64"


def command(name, *others):
    """A program of this machine, by the first of its names that is there."""
    for path in (name, *others):
        if found := shutil.which(path):
            return found
    raise AssertionError(f"{name} is missing: {INSTALL}")


def archive(triple):
    """The name of an archive's only folder, and of the archive."""
    folder = f"creole-{VERSION}-{triple}"
    return folder, DIST / (folder + (".zip" if "windows" in triple else ".tar.gz"))


def unpacked(triple, to):
    """The binary out of an archive."""
    folder, file = archive(triple)
    if file.suffix == ".zip":
        with zipfile.ZipFile(file) as packed:
            packed.extractall(to)
    else:
        with tarfile.open(file) as packed:
            packed.extractall(to, filter="tar")
    for name in ("LICENSE", "THIRD-PARTY.txt", "README.txt"):
        assert (to / folder / name).stat().st_size > 100, name
    return to / folder / ("creole.exe" if "windows" in triple else "creole")


@contextlib.contextmanager
def serving(start, env=None):
    """`creole demo`, and its address."""
    arguments = [*start, "demo", "--listen", "127.0.0.1:0"]
    child = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    # Wine and qemu take seconds to start; a program that says nothing must not stop the tests.
    limit = threading.Timer(120, child.kill)
    limit.start()
    try:
        line = child.stdout.readline()
        found = re.search(r"listening on http://(\S+)", line)
        assert found, f"it said {line!r} {child.stderr.read()[-500:] if not line else ''}"
        yield found[1]
    finally:
        limit.cancel()
        child.kill()
        child.communicate()


def answers(start, env=None):
    """The program says its version, and translates an answer and a stream of the demo model."""
    said = subprocess.run([*start, "--version"], capture_output=True, text=True, env=env, timeout=120)
    assert said.stdout.strip() == f"creole {VERSION}", f"{said.stdout!r} {said.stderr[-500:]!r}"
    with serving(start, env) as address:
        for stream in (False, True):
            asked = {"model": "m", "max_tokens": 100, "stream": stream}
            asked["messages"] = [{"role": "user", "content": "demo:say From the package"}]
            connection = http.client.HTTPConnection(address, timeout=60)
            headers = {"content-type": "application/json", "x-api-key": "k"}
            connection.request("POST", "/v1/messages", json.dumps(asked), headers)
            response = connection.getresponse()
            body = response.read().decode()
            connection.close()
            assert response.status == 200 and "From" in body and "package" in body, body
            assert ("event: message_stop" in body) == stream, body


def a_pdf(text):
    """A PDF of one page with this text."""
    drawn = f"BT /F 12 Tf 50 700 Td ({text}) Tj ET"
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Count 1/Kids[3 0 R]>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
        f"<</Length {len(drawn)}>>stream\n{drawn}\nendstream",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    numbered = "".join(f"{at} 0 obj\n{what}\nendobj\n" for at, what in enumerate(objects, 1))
    return f"%PDF-1.4\n{numbered}trailer <</Size 6/Root 1 0 R>>\n%%EOF\n".encode()


def reads_a_pdf(start, env=None):
    """The program starts itself once more, and the model gets the text."""
    source = {"type": "base64", "media_type": "application/pdf", "data": base64.b64encode(a_pdf("From a PDF")).decode()}
    asked = {"model": "m", "max_tokens": 200}
    asked["messages"] = [{"role": "user", "content": [{"type": "document", "source": source}]}]
    with serving(start, env) as address:
        connection = http.client.HTTPConnection(address, timeout=60)
        connection.request("POST", "/v1/messages", json.dumps(asked), {"content-type": "application/json", "x-api-key": "k"})
        response = connection.getresponse()
        body = response.read().decode()
        connection.close()
    # The demo model quotes what it got.
    assert response.status == 200 and "From a PDF" in body, f"{response.getheader('x-creole-warnings')} {body}"


def in_folder(folder, path, architecture):
    """How a program starts that sees nothing but this folder, without being root."""
    isolated = [] if os.geteuid() == 0 else [command("unshare"), "--user", "--map-root-user"]
    start = [*isolated, command("chroot", "/usr/sbin/chroot"), str(folder)]
    if architecture == "arm64":
        shutil.copy(command(QEMU), folder / "qemu")
        start.append("/qemu")
    return [*start, path]


def the_checksums_are_those_of_the_files(_):
    lines = (DIST / "SHA256SUMS").read_text().splitlines()
    for line in lines:
        digest, name = line.split("  ", 1)
        assert hashlib.sha256((DIST / name).read_bytes()).hexdigest() == digest, name
    named = {line.split("  ", 1)[1] for line in lines}
    for triple in [*LINUX.values(), *MACOS, WINDOWS]:
        assert archive(triple)[1].name in named, triple
    for name in ("creole.wasm", "envoy.yaml", f"creole-{VERSION}-worker.tar.gz"):
        assert name in named, name


def the_archive_of_the_worker_is_what_wrangler_and_workerd_read(folder):
    name = f"creole-{VERSION}-worker"
    with tarfile.open(DIST / f"{name}.tar.gz") as content:
        content.extractall(folder, filter="data")
    settings = tomllib.loads((folder / name / "wrangler.toml").read_text())
    modules = folder / name / settings["base_dir"]
    assert (folder / name / settings["main"]).is_file() and (folder / name / settings["main"]).parent == modules
    named = re.findall(r'embed "([^"]+)"', (modules / "modules.capnp").read_text())
    assert len(named) > 2, named
    for module in named:
        assert (modules / module).is_file(), module


def the_binary_for_linux_x64_serves_and_reads_pdfs(folder):
    program = str(unpacked(LINUX["amd64"], folder))
    answers([program])
    reads_a_pdf([program])


def the_binary_for_linux_arm64_serves_under_qemu(folder):
    answers([command(QEMU), str(unpacked(LINUX["arm64"], folder))])


def the_binaries_for_linux_need_no_library(folder):
    for triple in LINUX.values():
        program = unpacked(triple, folder).read_bytes()
        # A program that needs one names what loads it.
        assert b"/ld-musl" not in program and b"/ld-linux" not in program, triple


def the_binary_for_windows_serves_and_reads_pdfs_under_wine(folder):
    program = unpacked(WINDOWS, folder)
    wine = command("wine64", "/usr/lib/wine/wine64", "wine")
    # Wine has this library of Windows since version 9.
    library = program.parent / "bcryptprimitives.dll"
    source = Path(__file__).parent / "bcryptprimitives.c"
    build = [ZIG, "cc", "-target", "x86_64-windows-gnu", "-shared", "-o", str(library), str(source), "-ladvapi32"]
    subprocess.run(build, check=True)
    env = {**os.environ, "WINEPREFIX": str(folder / "wine"), "WINEDEBUG": "-all"}
    try:
        answers([wine, str(program)], env)
        reads_a_pdf([wine, str(program)], env)
    finally:
        server = shutil.which("wineserver") or "/usr/lib/wine/wineserver64"
        subprocess.run([server, "--kill"], env=env, check=False)


def the_binaries_for_macos_are_signed_and_need_only_the_system(folder):
    for triple in MACOS:
        found = mach_o.read(unpacked(triple, folder).read_bytes())
        assert found.processor == triple.split("-")[0], found.processor
        for library in found.libraries:
            assert re.fullmatch(r"/usr/lib/lib(System|iconv|charset)[.\w]*\.dylib", library), library
        assert not found.search_paths, found.search_paths
        # Apple's processors run no program without a signature, whoever made it.
        assert found.signed_pages or triple.startswith("x86_64"), "it has no signature"
        assert not found.broken_pages, f"pages {found.broken_pages[:5]} are not those that were signed"


def no_artefact_names_a_folder_of_this_machine(folder):
    # With what follows: the home /root is no part of a file `/roots.rs`.
    homes = {f"{ROOT}/".encode(), f"{Path.home()}/".encode(), os.environ.get("CARGO_HOME", "/.cargo/").encode()}
    looked_at = [*DIST.glob("*.wasm"), *(DIST / "worker").rglob("*.wasm")]
    for triple in [*LINUX.values(), *MACOS, WINDOWS]:
        looked_at.append(unpacked(triple, folder))
    assert len(looked_at) >= 9, looked_at
    for file in looked_at:
        content = file.read_bytes()
        for home in homes:
            at = content.find(home)
            assert at < 0, f"{file.name}: {content[at : at + 120]!r}"


def the_image_has_a_program_for_each_processor_that_serves(folder):
    def blob(descriptor):
        content = (DIST / "image/blobs/sha256" / descriptor["digest"].removeprefix("sha256:")).read_bytes()
        assert descriptor["digest"] == "sha256:" + hashlib.sha256(content).hexdigest()
        assert descriptor["size"] == len(content)
        return content

    [top] = json.loads((DIST / "image/index.json").read_text())["manifests"]
    assert top["annotations"]["org.opencontainers.image.ref.name"] == VERSION
    images = json.loads(blob(top))["manifests"]
    assert {image["platform"]["architecture"] for image in images} == set(LINUX)
    for image in images:
        manifest = json.loads(blob(image))
        config = json.loads(blob(manifest["config"]))
        architecture = image["platform"]["architecture"]
        assert (config["os"], config["architecture"]) == ("linux", architecture)
        assert config["config"]["User"] == "65534:65534"
        [layer] = manifest["layers"]
        packed, root = folder / "layer", folder / architecture
        packed.write_bytes(blob(layer))
        with tarfile.open(packed) as content:
            content.extractall(root, filter="tar")
        answers(in_folder(root, config["config"]["Entrypoint"][0], architecture))


def main():
    passed = failed = 0
    for check in [found for name, found in globals().items() if name.startswith("the_") or name.startswith("no_")]:
        name = check.__name__.replace("_", " ")
        with tempfile.TemporaryDirectory(prefix="creole-dist-") as folder:
            try:
                check(Path(folder))
                passed += 1
                print(f"ok      {name}", flush=True)
            except Exception as error:
                failed += 1
                print(f"FAILED  {name}: {type(error).__name__}: {error}", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
