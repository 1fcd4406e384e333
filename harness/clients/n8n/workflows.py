"""The workflows of the n8n checks: an Orchestrator with three agents as its tools, each started by a
webhook of its own name.

    flat      Orchestrator -> Research, Strategy, Writing
    nested    Orchestrator -> Research -> Strategy -> Writing
"""
LANGCHAIN = "@n8n/n8n-nodes-langchain."
PROMPT = "={{ $fromAI('Prompt__User_Message_', ``, 'string') }}"
AGENTS = {
    "Research Agent": ("finds facts about a topic", "You are the RESEARCHER. Use the lookup tool."),
    "Strategy Agent": ("makes a content strategy from research", "You are the STRATEGIST."),
    "Writing Agent": ("writes the final text", "You are the WRITER."),
}
ORCHESTRATOR = (
    "You are the ORCHESTRATOR. First call the Research Agent, then the Strategy Agent, "
    "then the Writing Agent, then answer."
)


def credentials(creole, naive):
    """One set for each place that clients are pointed at."""
    def anthropic(key, url):
        return {"id": key, "name": key, "type": "anthropicApi", "data": {"apiKey": "dummy", "url": url}}

    openai = {"apiKey": "dummy", "url": creole + "/v1"}
    return [
        anthropic("creole", creole),
        anthropic("naive", naive),
        {"id": "openai", "name": "openai", "type": "openAiApi", "data": openai},
    ]


def node(name, kind, version, parameters, **more):
    key = name.lower().replace(" ", "-")
    return {"id": key, "name": name, "type": kind, "typeVersion": version, "position": [0, 0],
            "parameters": parameters, **more}


def model(name, account, stream):
    value = {"__rl": True, "mode": "id", "value": "demo"}
    if account == "openai":
        return node(name, LANGCHAIN + "lmChatOpenAi", 1.3,
                    {"model": value, "responsesApiEnabled": False, "options": {}},
                    credentials={"openAiApi": {"id": "openai", "name": "openai"}})
    options = {"streaming": True} if stream else {}
    return node(name, LANGCHAIN + "lmChatAnthropic", 1.6, {"model": value, "options": options},
                credentials={"anthropicApi": {"id": account, "name": account}})


def workflow(name, account="creole", orchestrator=None, nested=False, stream=False):
    """`account` is where the models are; `orchestrator` where the Orchestrator's own is, if elsewhere."""
    nodes = [
        node("Webhook", "n8n-nodes-base.webhook", 2.1,
             {"httpMethod": "POST", "path": name, "responseMode": "lastNode", "options": {}},
             webhookId=name),
        node("Orchestrator", LANGCHAIN + "agent", 3.1,
             {"promptType": "define", "text": "Write a short post about edge computing.",
              "options": {"systemMessage": ORCHESTRATOR}}),
        model("Orchestrator Model", orchestrator or account, stream),
        node("lookup", LANGCHAIN + "toolCode", 1.3,
             {"description": "Looks up a fact. Input: a string.",
              "jsCode": "return 'FACT about ' + query + ': latency is 5ms';"}),
    ]
    links = {"Webhook": {"main": [[{"node": "Orchestrator", "type": "main", "index": 0}]]}}

    def link(start, end, kind):
        links[start] = {kind: [[{"node": end, "type": kind, "index": 0}]]}

    link("Orchestrator Model", "Orchestrator", "ai_languageModel")
    above = "Orchestrator"
    for agent, (what, system) in AGENTS.items():
        nodes.append(node(agent, LANGCHAIN + "agentTool", 3,
                          {"toolDescription": f"{agent}: {what}", "text": PROMPT,
                           "options": {"systemMessage": system}}))
        own = agent.replace("Agent", "Model")
        nodes.append(model(own, account, stream))
        link(own, agent, "ai_languageModel")
        link(agent, above, "ai_tool")
        if nested:
            above = agent
    link("lookup", "Research Agent", "ai_tool")
    return {"id": ("wf" + name.replace("-", "") + "0" * 16)[:16], "name": name, "active": False,
            "nodes": nodes, "connections": links, "settings": {"executionOrder": "v1"}, "pinData": {}}
