"""Server tools with the official Python SDK, in front of real MCP servers and a search service.

    python checks.py PLAN

PLAN is the JSON of `place.py`. Each check runs twice: for whole answers and for streams. The last line is
`N passed, N failed`.
"""
import sys
import traceback

import anthropic

import ends
import mcp_servers
import notebooks
import searches
import tool_searches
from place import DEMO, fetch

MODULES = (mcp_servers, tool_searches, searches, ends, notebooks)


def main():
    passed = failed = 0
    for module in MODULES:
        for check in module.checks:
            for streamed in (False, True):
                name = check.__name__.replace("_", " ") + (", streamed" if streamed else "")
                try:
                    check(streamed)
                    passed += 1
                    print(f"ok   {name}", flush=True)
                except Exception:
                    failed += 1
                    print(f"FAIL {name}", flush=True)
                    traceback.print_exc(file=sys.stdout)
    fetch(f"{DEMO}/demo/script", "DELETE")
    print(f"anthropic {anthropic.__version__}, python")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
