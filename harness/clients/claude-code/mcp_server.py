"""An MCP server over stdio with odd schemas. Each tool gives back the arguments that came."""
import json
import sys

PLAIN = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "note": {"type": "string"},
        "size": {"type": "integer", "minimum": 1},
        "page": {"type": "integer", "minimum": 1, "default": 1},
        "exact": {"type": "boolean"},
        "order": {"enum": ["asc", "desc"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "since": {"type": "string", "format": "date"},
        "cursor": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "message": {"type": "integer", "format": "int64"},
        "filter": {
            "anyOf": [
                {"type": "object", "properties": {"from": {"type": "integer"}, "name": {"type": "string"}}},
                {"type": "null"},
            ]
        },
    },
    "required": ["query"],
}
# Which members it asks for depends on others: nothing here may be touched.
ODD = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
    "dependentRequired": {"name": ["id"]},
}
TOOLS = [
    {"name": "search", "description": "Searches", "inputSchema": PLAIN},
    {"name": "odd", "description": "Finds", "inputSchema": ODD},
]


def answer(request):
    """The result of a request."""
    method, params = request["method"], request.get("params") or {}
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "odd", "version": "1"}}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        text = json.dumps(params.get("arguments"), sort_keys=True)
        return {"content": [{"type": "text", "text": "got " + text}]}
    return {}


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer(asked)}), flush=True)
