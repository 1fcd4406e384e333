"""The alert rules: Prometheus takes them, each alert fires in a test and in no other, and its page says what to do.

    alerts.py ROOT PROMTOOL
"""

import pathlib
import re
import subprocess
import sys

import yaml
from client import Checks


def fired(tests):
    """Names of the alerts that each test expects."""
    for test in tests:
        samples = [sample for one in test["promql_expr_test"] for sample in one["exp_samples"]]
        yield test["name"], {name for sample in samples for name in re.findall(r'alertname="(\w+)"', sample["labels"])}


def main(root, promtool):
    check, root = Checks(), pathlib.Path(root)
    folder = root / "deploy/prometheus"
    for command in (["check", "rules", "creole.rules.yaml"], ["test", "rules", "creole.rules.test.yaml"]):
        done = subprocess.run([promtool, *command], cwd=folder, capture_output=True, text=True)
        check(f"promtool {' '.join(command)}", done.returncode == 0, done.stdout + done.stderr)
    groups = yaml.safe_load((folder / "creole.rules.yaml").read_text())["groups"]
    rules = [rule for group in groups for rule in group["rules"] if "alert" in rule]
    names = [rule["alert"] for rule in rules]
    tests = dict(fired(yaml.safe_load((folder / "creole.rules.test.yaml").read_text())["tests"]))
    for name in names:
        check(f"{name} fires in a test", any(name in found for found in tests.values()), str(tests))
    check("one test without alerts has a vendor that refuses with 429", any("429" in name and not found for name, found in tests.items()), str(tests))
    headings = re.findall(r"^## (Creole\w+)$", (root / "docs/alerts.md").read_text(), re.MULTILINE)
    check("docs/alerts.md has each alert, in this order", headings == names, f"{headings}, not {names}")
    for rule in rules:
        check(f"{rule['alert']}: severity", rule["labels"]["severity"] in ("page", "ticket"), str(rule["labels"]))
        wanted = f"docs/alerts.md#{rule['alert'].lower()}"
        check(f"{rule['alert']}: page", rule["annotations"]["runbook"] == wanted, str(rule["annotations"]))
    return check.close()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
