"""From nothing to an answer of Claude Code, in a Debian that has no compiler and no network.

Arguments: a folder that is kept, the folder of npm packages, that of wheels, the archive, the programs of Node, uv and
Claude Code. Needs root, debootstrap and unshare. Each way has a new copy of the Debian, a user with an empty home, and
60 seconds; beside it there is only a registry with our own packages, on the loopback address of a network namespace.
"""
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import time

from model_server import ModelServer
from program import Demo, check, main
from registry import Registry

FOLDER, NPM, WHEELS, ARCHIVE, NODE, UV, CLAUDE = (os.path.abspath(path) for path in sys.argv[1:8])
INSIDE = "--inside"
RELEASE = "bookworm"
LIMIT_SECONDS = 60
USER = 1000


def debian(name, *packages):
    """A minimal Debian with these packages, made once."""
    path = os.path.join(FOLDER, name)
    if not os.path.exists(path + ".complete"):
        shutil.rmtree(path, ignore_errors=True)
        include = [f"--include={','.join(packages)}"] if packages else []
        with open(path + ".log", "w") as log:
            subprocess.run(["debootstrap", "--variant=minbase", *include, RELEASE, path], check=True, stdout=log)
        open(path + ".complete", "w").close()
    return path


def loopback():
    """A new network namespace has its loopback address only once it is up."""
    get, put, up = 0x8913, 0x8914, 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(any_socket, get, request))[1]
        fcntl.ioctl(any_socket, put, struct.pack("16sH14x", b"lo", flags | up))


class Root:
    """A copy of a Debian for one way, which is left as it was."""

    def __init__(self, base, name):
        self.start = time.monotonic()
        layers = [os.path.join(FOLDER, "layers", name, part) for part in ("upper", "work", "root")]
        for layer in layers:
            os.makedirs(layer)
        upper, work, self.path = layers
        options = f"lowerdir={base},upperdir={upper},workdir={work}"
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, self.path], check=True)
        subprocess.run(["mount", "-t", "proc", "proc", os.path.join(self.path, "proc")], check=True)
        self.home = "/srv/user"
        os.makedirs(self.path + self.home)
        os.chown(self.path + self.home, USER, USER)
        os.chmod(os.path.join(self.path, "tmp"), 0o1777)
        # What the user has besides, and what is not measured: the client.
        shutil.copy(CLAUDE, self.path + "/usr/local/bin/claude")
        self.start = time.monotonic()

    def command(self, *command, **environment):
        words = {
            "HOME": self.home, "PATH": "/usr/local/bin:/usr/bin:/bin", "npm_config_registry": registry.url,
            "npm_config_update_notifier": "false", "PIP_INDEX_URL": registry.url + "/simple",
            "UV_DEFAULT_INDEX": registry.url + "/simple", **environment,
        }
        words = [f"{name}={value}" for name, value in words.items()]
        chroot = ["chroot", f"--userspec={USER}:{USER}", self.path, "/usr/bin/env", "-i", f"--chdir={self.home}"]
        return [*chroot, *words, *command]

    def run(self, *command, code=0, **environment):
        done = subprocess.run(
            self.command(*command, **environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=LIMIT_SECONDS,
        )
        assert done.returncode == code, f"{command}: {done.returncode}: {done.stdout}"
        return done.stdout

    def lacks(self, *programs):
        for program in programs:
            self.run("sh", "-c", f"command -v {program}", code=127)

    def agent_works_behind(self, *command):
        """Starts Creole by this command, and lets the agent use a tool and answer."""
        with Demo(self.command(*command), os.environ, FOLDER) as demo:
            said = self.run(
                "claude", "-p", "demo:say It works.", "--model", "demo", "--output-format", "json",
                ANTHROPIC_BASE_URL=demo.url, ANTHROPIC_AUTH_TOKEN="local", ANTHROPIC_DEFAULT_HAIKU_MODEL="demo",
                CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1", DISABLE_AUTOUPDATER="1",
            )
            result = json.loads(said.strip().splitlines()[-1])
            assert result["result"] == "It works." and not result["is_error"], said
            seconds = time.monotonic() - self.start
            print(f"{' '.join(command)}: Claude Code has answered after {seconds:.1f} s", flush=True)
            assert seconds < LIMIT_SECONDS, seconds


COMPILERS = ("cargo", "rustc", "cc", "gcc", "clang")


def with_node(name):
    root = Root(os.path.join(FOLDER, "debian"), name)
    node = os.path.dirname(os.path.dirname(NODE))
    for part in ("bin", "lib"):
        shutil.copytree(os.path.join(node, part), f"{root.path}/opt/node/{part}", symlinks=True)
    for link, file in (("node", "bin/node"), ("npm", "lib/node_modules/npm/bin/npm-cli.js"),
                       ("npx", "lib/node_modules/npm/bin/npx-cli.js")):
        os.symlink(f"/opt/node/{file}", f"{root.path}/usr/local/bin/{link}")
    root.lacks(*COMPILERS, "python3")
    root.start = time.monotonic()
    return root


@check
def from_npx_to_an_answer():
    with_node("npx").agent_works_behind("npx", "--yes", "creole")


@check
def from_npm_install_to_an_answer():
    root = with_node("npm")
    root.run("npm", "install", "--global", "--prefix", root.home + "/.local", "creole")
    root.agent_works_behind(root.home + "/.local/bin/creole")


@check
def from_the_archive_to_an_answer():
    root, creole = unpacked("archive")
    root.agent_works_behind(creole)


class Terminal:
    """A command on a terminal of its own; `keys` are pressed when a text is seen on it."""

    def __init__(self, command, columns=100):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)
        self.fd, self.text = ours, ""

    def sees(self, words, keys=""):
        end = time.monotonic() + LIMIT_SECONDS
        while words not in self.text:
            assert time.monotonic() < end, f"{words} is not in {self.text}"
            self.read()
        os.write(self.fd, keys.encode())

    def read(self):
        if select.select([self.fd], [], [], 1)[0]:
            try:
                self.text += os.read(self.fd, 65536).decode(errors="replace")
            except OSError:  # the command has ended
                return False
        return True

    def ends(self):
        while self.read():
            pass
        return self.process.wait(LIMIT_SECONDS)


def unpacked(name):
    root = Root(os.path.join(FOLDER, "debian"), name)
    shutil.copy(ARCHIVE, root.path + root.home)
    root.lacks(*COMPILERS, "python3", "node")
    archive = os.path.basename(ARCHIVE)
    root.run("tar", "xzf", archive)
    return root, "./" + archive.removesuffix(".tar.gz") + "/creole"


QUIET = {"TERM": "xterm", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
TOOL = ("Bash", {"command": "echo made > made", "description": "Make a file"})


@check
def from_the_menu_to_a_tool_call_in_three_keys():
    root, creole = unpacked("menu")
    with ModelServer(8000, ["one"], 65536, TOOL), ModelServer(1234, ["a", "b"], 65536, TOOL) as chosen:
        root.start = time.monotonic()
        arguments = ["-p", "Make a file.", "--allowedTools", "Bash"]
        terminal = Terminal(root.command(creole, "launch", "claude", "--", *arguments, **QUIET))
        terminal.sees("server", "\x1b[B\r")
        terminal.sees("model", "\r")
        terminal.sees("to go on with this session: ")
        seconds = time.monotonic() - root.start
        assert terminal.ends() == 0, terminal.text
        print(f"Claude Code has called a tool {seconds:.1f} s after the first key", flush=True)
        assert seconds < 20 and "It is done." in terminal.text, terminal.text
        assert open(root.path + root.home + "/made").read() == "made\n"
        log = re.search(r"what happened is in (\S+)", terminal.text).group(1)
        lines = open(root.path + log).read()
        assert lines.count("POST /v1/messages 200") >= 2 and "Make a file" not in lines, lines
        again = re.search(r"to go on with this session: (.*)", terminal.text).group(1).strip()
        pasted = Terminal(root.command("sh", "-c", again + " -p 'Go on.'", **QUIET))
        assert pasted.ends() == 0 and "It is done." in pasted.text, pasted.text
        said = json.dumps(chosen.asked[-1]["messages"])
        assert "Make a file." in said and "Go on." in said, said


@check
def with_a_small_window_nothing_starts_before_the_user_has_read_why():
    root, creole = unpacked("window")
    with ModelServer(8000, ["one"], 8192, TOOL) as server:
        terminal = Terminal(root.command(creole, "launch", "claude", "--", "-p", "Hi", **QUIET), columns=60)
        terminal.sees("--max-model-len")
        terminal.sees("Start all the same?", "n")
        assert terminal.ends() == 1, terminal.text
        assert server.asked == [], server.asked
        root.run(creole, "launch", "claude", "--", "-p", "Hi", code=1)


@check
def from_the_wheel_to_an_answer():
    root = Root(os.path.join(FOLDER, "python"), "pip")
    root.lacks(*COMPILERS, "node")
    root.run("python3", "-m", "venv", "venv")
    root.run("venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", "creole-gateway")
    root.agent_works_behind("venv/bin/creole")


@check
def from_uvx_to_an_answer():
    root = Root(os.path.join(FOLDER, "python"), "uvx")
    for program in (UV, os.path.join(os.path.dirname(UV), "uvx")):
        shutil.copy(program, root.path + "/usr/local/bin")
    root.lacks(*COMPILERS, "node")
    root.start = time.monotonic()
    root.agent_works_behind("uvx", "creole-gateway")


if INSIDE not in sys.argv:
    os.makedirs(FOLDER, exist_ok=True)
    debian("debian")
    debian("python", "python3-venv")
    shutil.rmtree(os.path.join(FOLDER, "layers"), ignore_errors=True)
    namespaces = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child"]
    os.execvp("unshare", [*namespaces, sys.executable, "-B", *sys.argv, INSIDE])
signal.signal(signal.SIGINT, signal.SIG_DFL)
loopback()
registry = Registry(NPM, WHEELS)
main()
