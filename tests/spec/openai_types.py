"""Writes the types of OpenAI's APIs, as an SDK of OpenAI has them: of Responses into `responses_request.json` and
`responses_answer.json`, of answers in Chat Completions into `upstream.json`.

    python -m pip install openai
    python tests/spec/openai_types.py

The fate of each field is kept. What the SDK has and the files do not is printed, and gets the fate `undecided`, with which
`cargo test --test decisions` fails until someone decides.
"""

import collections.abc
import inspect
import json
import pathlib
import types
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import openai
from openai.types import chat, responses
from openai.types.responses import response_create_params
from pydantic import BaseModel
from typing_extensions import NotRequired, Required, get_type_hints, is_typeddict

HERE = pathlib.Path(__file__).parent
PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null", object: "object", Any: "object"}
DECIDED = ["fate", "sent", "values"]


class Types:
    """All types that can be reached from some, as `tests/decisions/spec.rs` reads them."""

    def __init__(self, *roots):
        self.found, self.waiting = {}, []
        for root in roots:
            self.tree(root)
        while self.waiting:
            kind = self.waiting.pop(0)
            self.found[name_of(kind)] = {name: self.field(*of) for name, of in fields(kind).items()}

    def field(self, kind, required):
        return {"type": self.tree(kind), **({"required": True} if required else {})}

    def tree(self, kind):
        origin, inner = get_origin(kind), get_args(kind)
        if origin in (Annotated, Required, NotRequired):
            return self.tree(inner[0])
        if isinstance(kind, TypeVar):
            return "object"
        if kind in PLAIN:
            return PLAIN[kind]
        if origin is Literal:
            return {"enum": list(inner)}
        if origin in (Union, types.UnionType):
            return self.union(inner)
        if inspect.isclass(origin) and issubclass(origin, collections.abc.Mapping):
            return {"map": self.tree(inner[1])}
        if inspect.isclass(origin) and issubclass(origin, collections.abc.Iterable):
            return {"array": self.tree(inner[0])}
        name = name_of(kind)
        if name not in self.found:
            self.found[name] = None
            self.waiting.append(kind)
        return "#" + name

    def union(self, kinds):
        flat = []
        for tree in map(self.tree, kinds):
            of = tree["any"] if isinstance(tree, dict) and "any" in tree else [tree]
            flat += [tree for tree in of if tree not in flat]
        return flat[0] if len(flat) == 1 else {"any": flat}


def name_of(kind):
    return f"{kind.__module__.rsplit('.', 1)[1]}.{kind.__name__}"


def fields(kind):
    """Name to type, and whether it is required."""
    if is_typeddict(kind):
        hints = get_type_hints(kind, include_extras=True)
        return {name: (hint, name in kind.__required_keys__) for name, hint in hints.items()}
    assert issubclass(kind, BaseModel), kind
    known = kind.model_fields.items()
    return {field.alias or name: (field.annotation, field.is_required()) for name, field in known}


def merge(path, about, found):
    """Writes the types that were found, with what was decided before."""
    old = json.loads(path.read_text())["types"] if path.exists() else {}
    lines = []
    for name, facts in found.items():
        rows = []
        for field, fact in facts.items():
            before = old.get(name, {}).get(field)
            if before is None:
                print(f"{path.name}: {name}.{field} is new")
            elif before["type"] != fact["type"]:
                print(f"{path.name}: {name}.{field} was {before['type']}, and is {fact['type']}")
            decided = {key: before[key] for key in DECIDED if before and key in before}
            rows.append(f"   {json.dumps(field)}: {json.dumps({'fate': ['undecided'], **decided, **fact}, ensure_ascii=False)}")
        lines.append(f"  {json.dumps(name)}: {{\n" + ",\n".join(rows) + "\n  }" if rows else f"  {json.dumps(name)}: {{}}")
    for name in old.keys() - found.keys():
        print(f"{path.name}: {name} is gone")
    text = f' "about": {json.dumps(about)},\n "types": {{\n' + ",\n".join(lines) + "\n }\n"
    path.write_text("{\n" + text + "}\n")


def main():
    version = f"as of openai {openai.__version__}"
    merge(
        HERE / "responses_request.json",
        f"Types of requests in Responses {version}, with what Creole writes of each.",
        Types(response_create_params.ResponseCreateParams).found,
    )
    merge(
        HERE / "responses_answer.json",
        f"Types of answers and stream events in Responses {version}, with what Creole does with each field.",
        Types(responses.Response, responses.ResponseStreamEvent).found,
    )
    merge(
        HERE / "upstream.json",
        f"Types of Chat Completions answers and chunks {version}, with what Creole does with each field.",
        Types(chat.ChatCompletion, chat.ChatCompletionChunk).found,
    )


main()
