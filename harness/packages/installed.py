"""The packages of npm and PyPI and the archive, for a user with an empty home and a registry on this machine.

Arguments: an empty folder, the folder of npm packages, that of wheels, the archive. The packages hold the program of
this machine for its own platform, and for each other platform a text that is no program.
"""
import os
import shutil
import signal
import subprocess
import sys

from program import Demo, check, main
from registry import Registry

FOLDER, NPM, WHEELS, ARCHIVE = (os.path.abspath(path) for path in sys.argv[1:5])
registry = Registry(NPM, WHEELS)


def folder(name):
    path = os.path.join(FOLDER, name)
    os.makedirs(path)
    return path


def user(name):
    """What a new user has: an empty home, programs of the system, and the registry."""
    home = folder(name)
    node = os.path.dirname(os.path.realpath(shutil.which("node")))
    path = os.pathsep.join([os.path.dirname(shutil.which("npm")), node, "/usr/bin", "/bin"])
    environment = {
        "HOME": home, "PATH": path, "npm_config_registry": registry.url, "npm_config_update_notifier": "false",
        "PIP_INDEX_URL": registry.url + "/simple", "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    registry.downloads()
    return home, environment


def ran(command, environment, home, code=0):
    done = subprocess.run(
        command, env=environment, cwd=home, stdin=subprocess.DEVNULL, text=True, timeout=60,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )
    assert done.returncode == code, f"{command}: {done.returncode}: {done.stdout}"
    return done.stdout


def of_this_platform():
    """The only files that hold a program for this machine: packages of others are some hundred bytes."""
    sizes = {name: len(body) for name, body in registry.files.items()}
    return [name for name, size in sizes.items() if size > 1_000_000]


@check
def npx_starts_the_gateway_and_downloads_no_program_of_another_platform():
    home, environment = user("npx")
    with Demo(["npx", "--yes", "creole"], environment, home) as demo:
        demo.answers()
    programs = [name for name in of_this_platform() if name.endswith(".tgz")]
    [launcher] = [file for name, (file, _) in registry.manifests.items() if name == "creole"]
    downloads = registry.downloads()
    assert downloads == sorted([launcher, *programs]), downloads


def installed_by_npm(name, *flags):
    home, environment = user(name)
    ran(["npm", "install", "--silent", *flags, "creole"], environment, home)
    return [os.path.join(home, "node_modules/.bin/creole")], environment, home


@check
def a_signal_reaches_the_program_and_its_exit_code_comes_back():
    command, environment, home = installed_by_npm("npm")
    for number in (signal.SIGTERM, signal.SIGINT):
        # In a terminal too, where the signal of a key would have come to both.
        for terminal in (False, True):
            with Demo(command, environment, home, terminal) as demo:
                demo.answers()
                assert demo.ends(number) == 0
    # The program does not handle it, so it ends by it, and so does what started it.
    with Demo(command, environment, home) as demo:
        assert demo.ends(signal.SIGHUP) == -signal.SIGHUP
    assert "unexpected argument" in ran([*command, "serve", "--no-such-flag"], environment, home, code=2)


@check
def ctrl_c_in_a_terminal_reaches_the_program_once():
    command, environment, home = installed_by_npm("npm-terminal")
    for way in (command, ["npx", "creole"]):
        with Demo(way, environment, home, terminal=True) as demo:
            demo.answers("demo:slow 100 demo:say A second signal would cut it.", lambda: os.write(demo.keys, b"\x03"))
            demo.process.wait(timeout=20)


@check
def a_package_that_is_missing_is_named():
    command, environment, home = installed_by_npm("npm-without", "--omit=optional")
    said = ran([*command, "--version"], environment, home, code=1)
    assert said.startswith("creole: the package creole-") and "--omit=optional" in said, said


def installed_by_pip(name):
    home, environment = user(name)
    venv = os.path.join(home, "venv")
    ran([sys.executable, "-m", "venv", "--without-pip", venv], environment, home)
    pip = [sys.executable, "-m", "pip", "--python", os.path.join(venv, "bin/python")]
    ran([*pip, "install", "--quiet", "--no-cache-dir", "creole-gateway"], environment, home)
    return os.path.join(venv, "bin"), environment, home


@check
def pip_installs_two_commands():
    programs, environment, home = installed_by_pip("pip")
    assert len(registry.downloads()) == 1
    for command in (["creole"], ["creole-gateway"], ["python", "-m", "creole_gateway"]):
        command[0] = os.path.join(programs, command[0])
        with Demo(command, environment, home) as demo:
            demo.answers()
            assert demo.ends() == 0
        assert "unexpected argument" in ran([*command, "serve", "--no-such-flag"], environment, home, code=2)


@check
def the_archive_has_the_program_in_a_folder_of_its_own_name():
    home, environment = user("archive")
    ran(["tar", "xzf", ARCHIVE], environment, home)
    name = os.path.basename(ARCHIVE).removesuffix(".tar.gz")
    assert os.listdir(home) == [name] and "LICENSE" in os.listdir(os.path.join(home, name))
    manual = open(os.path.join(home, name, "man", "creole-launch.1")).read()
    assert ".TH creole-launch" in manual and "\\-\\-small\\-model" in manual, manual
    shells = ["_creole", "creole.bash", "creole.fish", "creole.ps1"]
    assert sorted(os.listdir(os.path.join(home, name, "completions"))) == shells
    with Demo([os.path.join(home, name, "creole")], environment, home) as demo:
        demo.answers()
        assert demo.ends() == 0


main()
