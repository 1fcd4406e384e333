"""Whether the workflows are well-formed, with the inputs that their actions take: workflows.py ROOT ACTIONLINT."""

import subprocess
import sys
from pathlib import Path

ROOT, ACTIONLINT = Path(sys.argv[1]), sys.argv[2]
failed = 0
files = sorted((ROOT / ".github/workflows").glob("*.yml"))
for file in files:
    # Without shellcheck and pyflakes, which some machines have and others do not.
    command = [ACTIONLINT, "-shellcheck=", "-pyflakes=", str(file)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    print(said.stdout + said.stderr, end="")
    failed += said.returncode != 0
print(f"{len(files) - failed} passed, {failed} failed")
sys.exit(failed > 0)
