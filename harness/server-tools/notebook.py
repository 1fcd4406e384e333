"""An MCP server that holds a notebook of Python cells, as an agent works with one.

    notebook.py PORT

Beside `/mcp` it has `GET /state`, with the cells and with all calls so far, and `DELETE /state`, which
forgets both. `leave` ends the process: after its answer, or with `before` without any.
"""
import asyncio
import contextlib
import io
import os
import sys

import uvicorn
from mcp.server import MCPServer
from starlette.responses import JSONResponse


class Notebook:
    """Cells with their outputs, the names that they share, and the calls that were made."""

    def __init__(self):
        self.forget()

    def forget(self):
        self.cells, self.names, self.calls, self.tokens = [], {}, [], []

    def state(self):
        return {"cells": self.cells}

    def run(self, index):
        cell = self.cells[index]
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(cell["source"], self.names)
        cell["output"] = out.getvalue().strip()
        return cell["output"]


def application():
    """Returns the server as an ASGI application."""
    notebook, server = Notebook(), MCPServer("notebook")

    def called(name, **arguments):
        notebook.calls.append({"name": name, **arguments})

    @server.tool()
    def get_state() -> dict:
        """Returns all cells with their outputs."""
        called("get_state")
        return notebook.state()

    @server.tool()
    def create_cell(source: str) -> str:
        """Adds a cell with Python code, and returns its number."""
        called("create_cell", source=source)
        notebook.cells.append({"source": source, "output": None})
        return f"cell {len(notebook.cells) - 1}"

    @server.tool()
    def run_cell(index: int) -> str:
        """Runs a cell, and returns what it printed."""
        called("run_cell", index=index)
        return notebook.run(index)

    @server.tool()
    async def wait(seconds: float) -> str:
        """Waits."""
        called("wait", seconds=seconds)
        await asyncio.sleep(seconds)
        return f"waited {seconds} s"

    @server.tool()
    async def leave(before: bool = False) -> str:
        """Ends this server."""
        if before:
            os._exit(1)
        asyncio.get_running_loop().call_later(0.2, os._exit, 1)
        return "bye"

    @server.custom_route("/state", methods=["GET", "DELETE"])
    async def state(request):
        if request.method == "DELETE":
            notebook.forget()
        return JSONResponse({**notebook.state(), "calls": notebook.calls, "tokens": notebook.tokens})

    inner = server.streamable_http_app(json_response=True, stateless_http=True)

    async def app(scope, receive, send):
        if scope["type"] == "http" and scope["path"] == "/mcp":
            headers = dict(scope["headers"])
            notebook.tokens.append(headers.get(b"authorization", b"").decode())
        await inner(scope, receive, send)

    return app


if __name__ == "__main__":
    uvicorn.run(application(), host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
