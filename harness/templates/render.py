"""Renders translated requests with the chat templates of the vendors.

    python render.py REQUESTS ARCHIVE

REQUESTS is a folder that `tests/templates.rs` wrote: one JSON file for each template, with the
conversations as Creole sends them. ARCHIVE is a .tar.gz with .jinja files in it. A request is accepted if
the template raises nothing and its output says everything that the conversation says.

The environment of the templates is that of `transformers`, except that lists may be changed: the
template of Kimi K2 does. Before it renders, a server brings
messages into the shape that its template knows: input of calls as an object or as text, no content
as null or as an empty text, text parts as one text. Which one a template knows cannot be told from
outside, so all are tried, the one of most servers first.
"""

import datetime
import itertools
import json
import pathlib
import sys
import tarfile

import jinja2
import jinja2.ext
from jinja2.sandbox import SandboxedEnvironment


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def environment():
    made = SandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols]
    )
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = datetime.datetime(2026, 1, 1).strftime
    return made


def shaped(messages, objects, empty):
    messages = json.loads(json.dumps(messages))
    for message in messages:
        content = message.get("content")
        if content is None and empty:
            message["content"] = ""
        # Parts stay parts only where there is more than text.
        if isinstance(content, list) and all(part["type"] == "text" for part in content):
            message["content"] = "\n".join(part["text"] for part in content)
        for part in content if isinstance(content, list) else []:
            if part["type"] == "image_url":
                part["type"] = "image"
        for call in message.get("tool_calls", []) if objects else []:
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return messages


def render(template, body):
    """Gives the text, or what the template said to the first shape."""
    complaint = None
    for objects, empty in itertools.product((True, False), (False, True)):
        try:
            return template.render(
                messages=shaped(body["messages"], objects, empty),
                tools=body.get("tools"),
                add_generation_prompt=body["messages"][-1]["role"] != "assistant",
                bos_token="<s>",
                eos_token="</s>",
                **body.get("chat_template_kwargs", {}),
            ), None
        except Exception as error:  # Whatever a template raises is a refusal.
            complaint = complaint or f"{type(error).__name__}: {error}"
    return None, complaint


def sources(archive):
    with tarfile.open(archive) as files:
        return {
            pathlib.PurePath(file.name).stem: files.extractfile(file).read().decode()
            for file in files
            if file.name.endswith(".jinja")
        }


def main():
    requests, templates = pathlib.Path(sys.argv[1]), sources(sys.argv[2])
    jinja = environment()
    passed, failures = 0, []
    for file in sorted(requests.glob("*.json")):
        template = jinja.from_string(templates[file.stem])
        accepted = 0
        family = json.loads(file.read_text("utf-8"))
        cases = family["cases"]
        for case in cases:
            text, complaint = render(template, case["body"])
            # Some templates leave out what they are given; which, is known by name.
            says = [word for word in case["says"] if word not in family["drops"]]
            lost = [word for word in says if text is not None and word not in text]
            # A part that was printed as Python writes it was not understood.
            if not lost and text is not None and "'type': 'image'" in text:
                complaint = "it prints a part"
            if complaint or lost:
                failures.append(f"{file.stem}, {case['name']}: {complaint or f'lost {lost}'}")
            else:
                accepted += 1
        passed += accepted
        print(f"{file.stem:<44} {accepted:>3} of {len(cases)}")
    print("\n".join(failures))
    print(f"{passed} passed, {len(failures)} failed")
    sys.exit(bool(failures) or not passed)


main()
