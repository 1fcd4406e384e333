"""Requests of Responses with the members of Chat Completions, so that a check of what was sent is written once."""


def as_chat(body):
    """The request, with `messages`, `tools` and `response_format` if it is one of Responses."""
    if not isinstance(body, dict) or "input" not in body:
        return body
    form = body.get("text", {}).get("format")
    tools = [
        {"type": tool["type"], tool["type"]: tool} for tool in body.get("tools", [])
    ]
    return {**body, "messages": messages_of(body["input"]), "tools": tools, "response_format": form}


def content_of(content):
    if isinstance(content, str):
        return content
    return [
        {"type": "image_url", "image_url": {"url": part["image_url"]}} if part["type"] == "input_image"
        else {**part, "type": part["type"].removeprefix("input_")}
        for part in content
    ]


def messages_of(items):
    messages, thought = [], None
    for item in items:
        kind = item.get("type", "message")
        if kind == "reasoning":
            thought = "\n\n".join(part["text"] for part in item["summary"])
            continue
        if kind == "function_call_output":
            messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": content_of(item["output"])})
            continue
        if kind == "message" and item["role"] != "assistant":
            messages.append({"role": item["role"], "content": content_of(item["content"])})
            continue
        if not messages or messages[-1]["role"] != "assistant":
            messages.append({"role": "assistant", "content": None})
        if thought is not None:
            messages[-1]["reasoning_content"], thought = thought, None
        if kind == "message":
            messages[-1]["content"] = (messages[-1]["content"] or "") + item["content"]
        else:
            function = {"name": item["name"], "arguments": item["arguments"]}
            call = {"id": item["call_id"], "type": "function", "function": function}
            messages[-1].setdefault("tool_calls", []).append(call)
    return messages
