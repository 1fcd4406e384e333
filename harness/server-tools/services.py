"""Starts the services that the checks of server tools need, on ports of this machine.

    services.py NAME=PORT...

NAME is one of `SERVICES`: MCP servers of the packages `mcp` and `fastmcp` in each of their transports,
the notebook, and a search service whose answers follow from the query. An MCP server has `GET /seen`
beside its own path: for each request the method, the status, the type of the answer, the session that it
named and its token.
"""
import asyncio
import json
import sys

import uvicorn
from fastmcp import FastMCP
from mcp.server import MCPServer
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

import notebook


def tools_of(server):
    """Gives a server of either package the tools that the checks call."""

    @server.tool()
    def add(a: int, b: int) -> int:
        """Adds two numbers."""
        return a + b

    @server.tool()
    def fail(reason: str) -> str:
        """Fails."""
        raise ValueError(reason)

    return server


def of_mcp(**options):
    return tools_of(MCPServer("mcp")).streamable_http_app(**options)


def of_fastmcp(**options):
    return tools_of(FastMCP("fastmcp")).http_app(**options)


def watched(inner):
    """Returns an application that also tells what was asked and how it was answered."""
    seen = []

    async def app(scope, receive, send):
        if scope["type"] != "http":
            return await inner(scope, receive, send)
        if scope["path"] == "/seen":
            return await JSONResponse(seen)(scope, receive, send)
        given = {name: value.decode() for name, value in scope["headers"]}
        session, token = given.get(b"mcp-session-id"), given.get(b"authorization")
        one = {"method": None, "status": None, "type": None, "session": session, "token": token}
        body = b""

        async def taking():
            nonlocal body
            message = await receive()
            body += message.get("body", b"")
            return message

        async def giving(message):
            if message["type"] == "http.response.start":
                headers = {name.lower(): value.decode() for name, value in message["headers"]}
                one["status"] = message["status"]
                one["type"] = headers.get(b"content-type", "").split(";")[0]
                one["method"] = json.loads(body).get("method") if body else scope["method"]
                seen.append(one)
            await send(message)

        await inner(scope, taking, giving)

    return app


def search():
    """Returns a search service. Each query finds three pages on two sites, unless it names a fault."""
    seen = []

    def found(query):
        words = query.split(" (site:")[0].split(" -site:")[0]
        pages = [("docs.a.example/x", "Alpha"), ("b.example/y", "Beta"), ("nota.example/z", "Gamma")]
        return [
            {"url": f"https://{at}", "title": title, "content": f"{title} is about {words}.",
             "link": f"https://{at}", "name": title, "summary": f"{title} is about {words}."}
            for at, title in pages
        ]

    async def answer(request):
        query = request.query_params.get("text") or request.query_params.get("q") or ""
        seen.append(query)
        if "broken" in query:
            return JSONResponse({"error": "broken"}, status_code=500)
        if "busy" in query:
            return JSONResponse({"error": "busy"}, status_code=429)
        results = [] if "nowhere" in query else found(query)
        return JSONResponse({"hits": results, "results": results, "unresponsive_engines": []})

    async def told(request):
        if request.method == "DELETE":
            seen.clear()
        return JSONResponse(seen)

    routes = [Route("/find", answer), Route("/search", answer)]
    return Starlette(routes=[*routes, Route("/seen", told, methods=["GET", "DELETE"])])


SERVICES = {
    "mcp-json": lambda: watched(of_mcp(json_response=True, stateless_http=True)),
    "mcp-events": lambda: watched(of_mcp(json_response=False, stateless_http=True)),
    "mcp-json-session": lambda: watched(of_mcp(json_response=True)),
    "mcp-events-session": lambda: watched(of_mcp(json_response=False)),
    "mcp-sse": lambda: watched(tools_of(MCPServer("mcp")).sse_app()),
    "fastmcp-json": lambda: watched(of_fastmcp(json_response=True, stateless_http=True)),
    "fastmcp-events-session": lambda: watched(of_fastmcp()),
    "fastmcp-sse": lambda: watched(of_fastmcp(transport="sse")),
    "notebook": notebook.application,
    "search": search,
}


async def main():
    servers = []
    for argument in sys.argv[1:]:
        name, port = argument.split("=")
        config = uvicorn.Config(
            SERVICES[name](), host="127.0.0.1", port=int(port), log_level="warning",
            timeout_graceful_shutdown=1,
        )
        servers.append(uvicorn.Server(config))
    await asyncio.gather(*(server.serve() for server in servers))


if __name__ == "__main__":
    asyncio.run(main())
