"""Starts the program `creole` of this package, for tools that look for a command with the package's name."""

import os
import subprocess
import sys
from importlib.metadata import files


def program():
    """The path of the program, as the installer wrote it down."""
    name = "creole.exe" if os.name == "nt" else "creole"
    for file in files("creole-gateway") or []:
        if file.name == name:
            return os.path.realpath(file.locate())
    sys.exit(f"creole-gateway: its program {name} is missing; install the package again")


def main():
    command = [program(), *sys.argv[1:]]
    if os.name != "nt":
        os.execv(command[0], command)
    # Windows cannot replace a process. Ctrl-C reaches the program too, which then ends by itself.
    child = subprocess.Popen(command)
    while True:
        try:
            sys.exit(child.wait())
        except KeyboardInterrupt:
            pass
