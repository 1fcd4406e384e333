//! Hostile requests: each has a large number of one kind of part.

use serde_json::{Map, Value, json};

pub(crate) type Body = fn(usize) -> Value;

fn text(said: &str) -> Value {
    json!({"type": "text", "text": said})
}

fn call(id: usize, name: &str, input: Value) -> Value {
    json!({"type": "tool_use", "id": format!("t{id}"), "name": name, "input": input})
}

fn result(id: usize, said: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": format!("t{id}"), "content": said})
}

fn failure(id: usize, said: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": format!("t{id}"), "content": said, "is_error": true})
}

fn said(role: &str, content: Vec<Value>) -> Value {
    json!({"role": role, "content": content})
}

fn user(content: Vec<Value>) -> Value {
    said("user", content)
}

fn assistant(content: Vec<Value>) -> Value {
    said("assistant", content)
}

/// Returns `count` JSON values, each made from its index.
fn each(count: usize, one: impl Fn(usize) -> Value) -> Vec<Value> {
    (0..count).map(one).collect()
}

/// Returns `count` pairs of messages, followed by the messages in `after`.
fn turns(count: usize, one: impl Fn(usize) -> [Value; 2], after: &[Value]) -> Vec<Value> {
    (0..count).flat_map(one).chain(after.iter().cloned()).collect()
}

fn tool(name: &str) -> Value {
    json!({"name": name, "input_schema": {"type": "object"}})
}

fn tool_with(schema: Value) -> Vec<Value> {
    vec![json!({"name": "w", "input_schema": schema})]
}

fn request(tools: Vec<Value>, messages: Vec<Value>) -> Value {
    let mut all = vec![user(vec![text("a")])];
    all.extend(messages);
    json!({"model": "m", "max_tokens": 9, "tools": tools, "messages": all})
}

fn talk(messages: Vec<Value>) -> Value {
    request(Vec::new(), messages)
}

/// Adds members to the JSON object of a request's body.
fn with(mut body: Value, members: impl IntoIterator<Item = (String, Value)>) -> Value {
    if let Value::Object(body) = &mut body {
        body.extend(members);
    }
    body
}

fn object(members: impl IntoIterator<Item = (String, Value)>) -> Value {
    Value::Object(Map::from_iter(members))
}

/// Returns a request with changes of the tools in the middle, and the user's next words.
fn changes(tools: Vec<Value>, changes: Vec<Value>) -> Value {
    request(tools, vec![user(vec![text("b")]), said("system", changes), user(vec![text("c")])])
}

/// Returns a request with a tool that has a long list of values below `depth` choices, and one
/// fault, for which the whole schema is written again.
pub(crate) fn choices_around_a_long_list(depth: usize) -> Value {
    let values = json!({"enum": each(4_000, |at| json!(format!("v{at}"))), "default": false});
    let chain = |list: &str| {
        let around = |inside: Value, _| json!({list: [inside, {"not": {}}]});
        (0..depth).fold(values.clone(), around)
    };
    let properties = json!({"a": chain("anyOf"), "b": chain("allOf"), "c": {"type": "any"}});
    request(tool_with(json!({"type": "object", "properties": properties})), vec![])
}

const DONE: usize = 9_999_999;

/// Returns the last messages of a conversation: a tool call, and the result of the call.
fn last(input: Value, said: &str) -> [Value; 2] {
    [assistant(vec![call(DONE, "w", input)]), user(vec![result(DONE, said)])]
}

pub(crate) const BODIES: &[(&str, Body)] = &[
    ("results that come late, in a message with a long member", |n| {
        let mut late = user(each(n, |at| result(at, "r")));
        late["more"] = "x".repeat(90 * n).into();
        let asks = |at| [assistant(vec![call(at, "w", json!({}))]), user(vec![text("b")])];
        talk(turns(n, asks, &[late]))
    }),
    ("messages of the assistant without words", |n| {
        let thoughts =
            [("SUP1 think", "VFhTAQLvkBocUoojEg=="), ("RES2 think", "VFhTAQL60osAqO7vhQ==")];
        let silent = |at: usize| {
            let (thinking, signature) = thoughts[at % 2];
            assistant(vec![
                json!({"type": "thinking", "thinking": thinking, "signature": signature}),
            ])
        };
        let mut all = vec![assistant(each(n, |_| text("b")))];
        all.extend(each(n, silent));
        all.extend(each(n, |_| assistant(vec![text("c")])));
        talk(all)
    }),
    ("messages of the assistant behind a call", |n| {
        let mut all = vec![assistant(vec![call(0, "w", json!({}))])];
        all.extend(each(n, |_| assistant(vec![text("c")])));
        talk(all)
    }),
    ("a toolset, added again and again", |n| {
        let toolset = json!({"type": "browser_toolset_20260801"});
        let added = json!({"type": "tool_addition", "tool": {"type": "tool_definition", "definition": toolset}});
        changes(vec![], each(n, |_| added.clone()))
    }),
    ("a tool, taken away and added again and again", |n| {
        let kinds = ["tool_removal", "tool_addition"];
        let change =
            |at| json!({"type": kinds[at % 2], "tool": {"type": "tool_reference", "name": "w"}});
        changes(vec![tool("w")], each(2 * n, change))
    }),
    ("a long result with the end of a reminder", |n| {
        let long = "x".repeat(90 * n) + "</system-reminder>";
        let asks = |at| [assistant(vec![call(at, "w", json!({}))]), user(vec![result(at, "a")])];
        talk(turns(n, asks, &last(json!({}), &long)))
    }),
    ("a long result with white space at its end", |n| {
        let long = "x".to_owned() + &"\n".repeat(90 * n);
        let asks = |at| [assistant(vec![call(at, "w", json!({}))]), user(vec![result(at, "a")])];
        talk(turns(n, asks, &last(json!({}), &long)))
    }),
    ("a long input, and other calls with the same result", |n| {
        let asks =
            |at| [assistant(vec![call(at, "w", json!({"a": at}))]), user(vec![result(at, "a")])];
        talk(turns(n, asks, &last(json!({"a": "x".repeat(90 * n)}), "a")))
    }),
    ("words beside a result, after a long talk", |n| {
        let pair = |_| [user(vec![text("a")]), assistant(vec![text("b")])];
        let mut beside = vec![result(0, "a")];
        beside.extend(each(n, |at| text(&format!("{at:050}"))));
        talk(turns(n, pair, &[assistant(vec![call(0, "w", json!({}))]), user(beside)]))
    }),
    ("the same words beside results that no call asked for", |n| {
        let ask = || text(&"x".repeat(50));
        let pair = |at| [assistant(vec![text("b")]), user(vec![result(at + 1, "a"), ask()])];
        let mut all =
            vec![assistant(vec![call(0, "w", json!({}))]), user(vec![result(0, "a"), ask()])];
        all.extend((0..n).flat_map(pair));
        talk(all)
    }),
    ("empty messages after words", |n| {
        let pair = |_| [assistant(vec![text("a"), text("b")]), user(vec![text("")])];
        talk(turns(n, pair, &[user(vec![text("c")])]))
    }),
    ("empty messages", |n| {
        let pair = |_| [assistant(vec![text("")]), user(vec![text("")])];
        talk(turns(n, pair, &[user(vec![text("c")])]))
    }),
    ("fields that nobody knows", |n| {
        with(talk(vec![]), (0..n).map(|at| (format!("x{at}"), json!(1))))
    }),
    ("ids that Kimi issued, then others", |n| {
        let own = |at: usize| format!("toolu_x_functions-df-c{}", n + at);
        let owned = |at| json!({"type": "tool_use", "id": own(at), "name": "f", "input": {}});
        let answer = |at| json!({"type": "tool_result", "tool_use_id": own(at), "content": "a"});
        let foreign = |at| call(at, "f", json!({}));
        talk(vec![
            assistant(each(n, owned)),
            user(each(n, answer)),
            assistant(each(n, foreign)),
            user(each(n, |at| result(at, "a"))),
        ])
    }),
    ("calls of one message", |n| {
        talk(vec![
            assistant(each(n, |at| call(at, "w", json!({})))),
            user(each(n, |at| result(at, "r"))),
        ])
    }),
    ("calls of one message, and their results the other way round", |n| {
        let results = each(n, |at| result(n - 1 - at, "r"));
        talk(vec![assistant(each(n, |at| call(at, "w", json!({})))), user(results)])
    }),
    ("a description of the ends of booleans", |n| {
        request(
            tool_with(json!({"properties": {"a": {"description": "rue".repeat(30 * n)}}})),
            vec![],
        )
    }),
    ("properties that are choices", |n| {
        let choice = json!({"properties": {"a": {}}, "anyOf": [{"properties": {"b": {}}}]});
        let all = object((0..n).map(|at| (format!("p{at}"), choice.clone())));
        request(tool_with(json!({"properties": all})), vec![])
    }),
    ("calls that fail together, and their results the other way round", |n| {
        let n = n / 2; // in four turns
        let fails = |turn: usize| {
            let id = move |at: usize| turn * n + at;
            let results = each(n, |at| failure(id(n - 1 - at), "boom"));
            [assistant(each(n, |at| call(id(at), "w", json!({})))), user(results)]
        };
        request(vec![tool("w")], turns(4, fails, &[]))
    }),
    ("one id in all turns", |n| {
        talk(turns(
            n,
            |_| [assistant(vec![call(1, "w", json!({}))]), user(vec![result(1, "a")])],
            &[],
        ))
    }),
    ("one id twice in each turn", |n| {
        let (twice, both) = (each(2, |_| call(1, "w", json!({}))), each(2, |_| result(1, "a")));
        talk(turns(n, |_| [assistant(twice.clone()), user(both.clone())], &[]))
    }),
    ("one id again and again in a message", |n| {
        talk(vec![
            assistant(each(n, |_| call(1, "w", json!({})))),
            user(each(n, |_| result(1, "a"))),
        ])
    }),
    ("results without calls", |n| talk(vec![user(each(n, |at| result(at, "a")))])),
    ("calls without results", |n| {
        talk(turns(n, |at| [assistant(vec![call(at, "w", json!({}))]), user(vec![text("b")])], &[]))
    }),
    ("results before their calls", |n| {
        let mut all = each(n, |at| user(vec![result(at, "a")]));
        all.extend(each(n, |at| assistant(vec![call(at, "w", json!({}))])));
        all.push(user(vec![text("b")]));
        talk(all)
    }),
    ("tools that fail, each by a name of its own", |n| {
        let asks = |at: usize| {
            let asked = call(at, &format!("w{}", at / 7), json!({}));
            [assistant(vec![asked]), user(vec![failure(at, "bad")])]
        };
        talk(turns(n, asks, &[]))
    }),
    ("a tool that fails and has a long schema", |n| {
        let required = each(n, |at| json!(format!("name{at}")));
        let asks = |at| {
            [
                assistant(vec![call(at, "w", json!({}))]),
                user(vec![failure(at, &format!("bad {at}"))]),
            ]
        };
        request(tool_with(json!({"type": "object", "required": required})), turns(n, asks, &[]))
    }),
    ("calls of a tool with a long schema", |n| {
        let properties = object((0..n).map(|at| (format!("p{at}"), json!({"type": "array"}))));
        let schema = json!({"type": "object", "properties": properties, "required": ["p0"]});
        let asks = |at| {
            [
                assistant(vec![call(at, "w", json!({"p1": "[1]"}))]),
                user(vec![result(at, &format!("r{at}"))]),
            ]
        };
        request(tool_with(schema), turns(n, asks, &[]))
    }),
    ("tools", |n| request(each(n, |at| tool(&format!("w{at}"))), vec![])),
    ("tools with long names that begin alike", |n| {
        request(each(n, |at| tool(&format!("{}{at}", "w".repeat(100)))), vec![])
    }),
    ("tools that are deferred, and references to them", |n| {
        let deferred = |at| with(tool(&format!("w{at}")), [("defer_loading".into(), json!(true))]);
        let reference = |at| json!({"type": "tool_reference", "tool_name": format!("w{at}")});
        let found =
            json!({"type": "tool_result", "tool_use_id": "t1", "content": each(n, reference)});
        let asked = assistant(vec![call(1, "w0", json!({}))]);
        request(each(n, deferred), vec![asked, user(vec![found])])
    }),
    ("properties", |n| {
        let properties = object((0..n).map(|at| (format!("p{at}"), json!({"type": "string"}))));
        request(tool_with(json!({"type": "object", "properties": properties})), vec![])
    }),
    ("references to one long definition", |n| {
        let properties = object((0..n).map(|at| (format!("p{at}"), json!({"$ref": "#/$defs/d"}))));
        let definition = json!({"description": "x".repeat(30 * n)});
        let schema =
            json!({"type": "object", "properties": properties, "$defs": {"d": definition}});
        request(tool_with(schema), vec![])
    }),
    ("a choice of many that has a long description", |n| {
        let of = |at: usize| json!({"const": format!("v{at}")});
        let choice = json!({"anyOf": each(n, of), "description": "x".repeat(30 * n)});
        let kinds = ["string", "number"].repeat(n / 2);
        let types = json!({"type": kinds, "description": "x".repeat(30 * n)});
        request(
            tool_with(json!({"type": "object", "properties": {"a": choice, "b": types}})),
            vec![],
        )
    }),
    ("definitions whose names become one", |n| {
        let name = |at: usize| -> String {
            (0..13).map(|bit| if at >> bit & 1 == 1 { '/' } else { '{' }).collect()
        };
        let definitions = object((0..n).map(|at| (name(at), json!({}))));
        request(tool_with(json!({"type": "object", "$defs": definitions})), vec![])
    }),
    ("definitions that refer to the next one twice", |n| {
        let next = |at: usize| json!({"$ref": format!("#/$defs/d{}", at + 1)});
        let twice = |at| json!({"type": "object", "properties": {"a": next(at), "b": next(at)}});
        let definitions = object((0..n).map(|at| (format!("d{at}"), twice(at))));
        let schema = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions});
        request(tool_with(schema), vec![])
    }),
    ("a root that refers to one long definition again and again", |n| {
        let properties = object((0..n).map(|at| (format!("p{at}"), json!({"type": "string"}))));
        let long = json!({"type": "object", "properties": properties});
        let again = each(n, |_| json!({"$ref": "#/$defs/A"}));
        let schema =
            json!({"type": "object", "anyOf": again, "$ref": "#/$defs/A", "$defs": {"A": long}});
        request(tool_with(schema), vec![])
    }),
    ("a root that chooses among many definitions", |n| {
        let one = |at| json!({"properties": {format!("p{at}"): {}}, "required": ["p0"]});
        let definitions = object((0..n).map(|at| (format!("D{at}"), one(at))));
        let all = each(n, |at| json!({"$ref": format!("#/$defs/D{at}")}));
        let schema = json!({"type": "object", "oneOf": all, "$defs": definitions});
        request(tool_with(schema), vec![])
    }),
    ("examples of inputs", |n| {
        let examples = each(n, |at| json!({"a": at}));
        request(vec![json!({"name": "w", "input_schema": {}, "input_examples": examples})], vec![])
    }),
    ("system messages between calls and results", |n| {
        let asks = |at| {
            let system = said("system", vec![text("be brief")]);
            [assistant(vec![call(at, "w", json!({}))]), system, user(vec![result(at, "a")])]
        };
        talk((0..n).flat_map(asks).collect())
    }),
    ("messages of the assistant alone", |n| {
        let mut all = each(n, |at| assistant(vec![call(at, "w", json!({}))]));
        all.push(user(each(n, |at| result(at, "r"))));
        talk(all)
    }),
    ("thoughts", |n| {
        let thinks = vec![
            json!({"type": "thinking", "thinking": "a", "signature": "b"}),
            json!({"type": "redacted_thinking", "data": "c"}),
            text("d"),
        ];
        talk(turns(n, |_| [assistant(thinks.clone()), user(vec![text("b")])], &[]))
    }),
    ("blocks that nobody knows", |n| {
        let unknown = |at| json!({"type": format!("x{at}")});
        talk(vec![assistant(each(n, unknown)), user(vec![text("b")])])
    }),
    ("documents", |n| {
        let source = json!({"type": "text", "media_type": "text/plain", "data": "a"});
        let document =
            |at| json!({"type": "document", "title": format!("d{at}"), "source": source});
        talk(vec![user(each(n, document))])
    }),
    ("search results and reminders", |n| {
        let found =
            json!({"type": "search_result", "source": "s", "title": "t", "content": [text("a")]});
        let kinds = [found, text("<system-reminder>a</system-reminder>")];
        talk(vec![user(each(2 * n, |at| kinds[at % 2].clone()))])
    }),
    ("reminders that are not closed", |n| {
        talk(vec![user(vec![text(&"<system-reminder>".repeat(n))])])
    }),
    ("reminders that are not opened", |n| {
        let asked = last(json!({}), "a");
        talk([asked.as_slice(), &[user(vec![text(&"</system-reminder>".repeat(n))])]].concat())
    }),
    ("a result of reminders", |n| {
        talk(last(json!({}), &"<system-reminder>a</system-reminder>\n".repeat(n)).to_vec())
    }),
    ("server tools in the history", |n| {
        let both = |at| {
            let id = format!("srvtoolu_{}", at / 2);
            match at % 2 {
                0 => {
                    json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {}})
                }
                _ => json!({"type": "web_search_tool_result", "tool_use_id": id, "content": []}),
            }
        };
        talk(vec![assistant(each(2 * n, both)), user(vec![text("b")])])
    }),
    ("inputs that are deep", |n| {
        let deep = (0..60).fold(json!(1), |inside, _| json!([inside]));
        let asks =
            |at| [assistant(vec![call(at, "w", json!({"a": deep}))]), user(vec![result(at, "a")])];
        talk(turns(n, asks, &[]))
    }),
    ("parts of the system prompt", |n| {
        let part = json!({"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}});
        with(talk(vec![]), [("system".into(), each(n, |_| part.clone()).into())])
    }),
];
