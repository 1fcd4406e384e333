// Requests of Responses with the members of Chat Completions, so that a check of what was sent is written once.

/** The request, with `messages`, `tools` and `response_format` if it is one of Responses. */
export function asChat(body) {
  if (!body?.input) return body;
  const tools = body.tools?.map((tool) => ({ type: tool.type, [tool.type]: tool }));
  return { ...body, messages: messagesOf(body.input), tools, response_format: body.text?.format };
}

function messagesOf(items) {
  const messages = [];
  let thought;
  for (const item of items) {
    const kind = item.type ?? "message";
    if (kind === "reasoning") {
      thought = item.summary.map((part) => part.text).join("\n\n");
    } else if (kind === "function_call_output") {
      messages.push({ role: "tool", tool_call_id: item.call_id, content: item.output });
    } else if (kind === "message" && item.role !== "assistant") {
      messages.push({ role: item.role, content: item.content });
    } else {
      if (messages.at(-1)?.role !== "assistant") messages.push({ role: "assistant" });
      const last = messages.at(-1);
      if (thought !== undefined) last.reasoning_content = thought;
      thought = undefined;
      if (kind === "message") last.content = (last.content ?? "") + item.content;
      else {
        const fn = { name: item.name, arguments: item.arguments };
        last.tool_calls = [...(last.tool_calls ?? []), { id: item.call_id, type: "function", function: fn }];
      }
    }
  }
  return messages;
}
