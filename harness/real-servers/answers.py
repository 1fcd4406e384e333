"""What the tiny model was taught to say, and the tools that it knows."""

GREETING = "Hello! How can I help you today?"
EMOJI = (
    "\U0001F642\U0001F680 caf\u00e9 na\u00efve \u65e5\u672c\u8a9e\u306e\u30c6\u30b9\u30c8 \ud55c\uad6d\uc5b4 "
    "\u0627\u0644\u0639\u0631\u0628\u064a\u0629 \U0001F468\u200d\U0001F469\u200d\U0001F467\u200d\U0001F466 "
    "\U0001F1E9\U0001F1EA e\u0301 \U0001F44D\U0001F3FD end."
)
COUNT = ", ".join(map(str, range(1, 121))) + "."
CODE = '```python\nprint("hi")  # <b>\n```'
FILE = (
    '# Title "quoted"\n\ndef main():\n\tprint("a\\\\b", \'c\')\n\treturn {"k": [1, 2.5, null]}\n\n'
    "<b>&amp;</b> \u00e9\u00fc \u65e5\u672c\u8a9e \U0001F642\U0001F468\u200d\U0001F469\u200d\U0001F467\nend\n"
)


def tool(name, description, **properties):
    """A tool whose inputs are all required."""
    types = {key: {"type": value} for key, value in properties.items()}
    schema = {"type": "object", "properties": types, "required": list(types)}
    return {"name": name, "description": description, "input_schema": schema}


WEATHER = tool("get_weather", "The weather of a city", city="string")
NEXT_STEP = tool("next_step", "Runs one step", step="integer")
WRITE_FILE = tool("write_file", "Writes a file", path="string", content="string")
