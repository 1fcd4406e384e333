//! The nine syntaxes.
//!
//! | syntax | a call |
//! |---|---|
//! | Hermes | `<tool_call>{"name": …, "arguments": …}</tool_call>` |
//! | Qwen | `<tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>` |
//! | Mistral | `[TOOL_CALLS] [{"name": …, "arguments": …}]` or `[TOOL_CALLS]NAME[ARGS]{…}` |
//! | Kimi | `<\|tool_call_begin\|>functions.NAME:N<\|tool_call_argument_begin\|>{…}<\|tool_call_end\|>` |
//! | GLM | `<tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>` |
//! | Llama | `{"type": "function", "name": …, "parameters": …}` |
//! | MiniMax | `<invoke name="NAME"><parameter name="KEY">VALUE</parameter></invoke>` |
//! | Harmony | `<\|channel\|>commentary to=functions.NAME …<\|message\|>{…}<\|call\|>` |
//! | DeepSeek | `<｜DSML｜invoke name="NAME"><｜DSML｜parameter name="KEY" string="true">VALUE</｜DSML｜parameter></｜DSML｜invoke>` |
//! | DeepSeek, to V3.1 | `<｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{…}<｜tool▁call▁end｜>` |
//!
//! All of them read several calls, and give nothing unless the whole text is calls (in Harmony also what
//! the model says before them).

use crate::json::{self, Kind, Reader, Writer};
use crate::profile::TextToolCalls;
use crate::words;

use super::super::text_filter::Piece;
use super::schema::{allows, property};

/// The schema of a tool by its name; `None`: there is no such tool.
type Schemas<'t> = &'t dyn Fn(&str) -> Option<&'t str>;

/// Reads `text` as calls.
pub(super) fn read(syntax: TextToolCalls, text: &str, schemas: Schemas<'_>) -> Option<Vec<Piece>> {
    let mut cursor = Cursor { rest: text };
    let mut calls = Vec::new();
    match syntax {
        TextToolCalls::Off => return None,
        TextToolCalls::Hermes => {
            while cursor.eat("<tool_call>") {
                calls.push(json_call(cursor.object()?)?);
                cursor.expect("</tool_call>")?;
            }
        }
        TextToolCalls::QwenXml => loop {
            let wrapped = cursor.eat("<tool_call>");
            if !cursor.eat("<function=") {
                if wrapped {
                    return None;
                }
                break;
            }
            let name = cursor.until(">")?.trim();
            let schema = schemas(name)?;
            let input = cursor.parameters("<parameter=", ">", "</parameter>", schema, own_lines)?;
            cursor.expect("</function>")?;
            // Some servers cut the tag before it off.
            if !cursor.eat("</tool_call>") && wrapped {
                return None;
            }
            calls.push(call(None, name, input));
        },
        TextToolCalls::Glm => {
            while cursor.eat("<tool_call>") {
                let end = cursor.rest.find(['<', '\n'])?;
                let name = cursor.take(end).trim();
                let schema = schemas(name)?;
                let mut input = Object::default();
                while cursor.eat("<arg_key>") {
                    let key = cursor.until("</arg_key>")?.trim();
                    cursor.rest = cursor.rest.trim_start().strip_prefix("<arg_value>")?;
                    input.member(key, cursor.until("</arg_value>")?, schema);
                }
                cursor.expect("</tool_call>")?;
                calls.push(call(None, name, input.end()));
            }
        }
        TextToolCalls::Minimax => {
            while cursor.eat("<minimax:tool_call>") {
                while cursor.eat("<invoke name=\"") {
                    let name = cursor.until("\">")?;
                    let input = cursor.parameters(
                        "<parameter name=\"",
                        "\">",
                        "</parameter>",
                        schemas(name)?,
                        |value| value,
                    )?;
                    cursor.expect("</invoke>")?;
                    calls.push(call(None, name, input));
                }
                cursor.expect("</minimax:tool_call>")?;
            }
        }
        TextToolCalls::Kimi => {
            while cursor.eat("<|tool_calls_section_begin|>") {
                while cursor.eat("<|tool_call_begin|>") {
                    let id = cursor.until("<|tool_call_argument_begin|>")?.trim();
                    let name = id.strip_prefix("functions.").unwrap_or(id);
                    let name = name.rsplit_once(':').map_or(name, |(name, _)| name);
                    let input = cursor.object()?.to_owned();
                    cursor.expect("<|tool_call_end|>")?;
                    calls.push(call(Some(id.to_owned()), name, input));
                }
                cursor.expect("<|tool_calls_section_end|>")?;
            }
        }
        TextToolCalls::Mistral => {
            while cursor.eat("[TOOL_CALLS]") {
                if cursor.eat("[") {
                    loop {
                        calls.push(json_call(cursor.object()?)?);
                        if !cursor.eat(",") {
                            break;
                        }
                    }
                    cursor.expect("]")?;
                } else {
                    let end = cursor.rest.find(['[', '{'])?;
                    let name = cursor.take(end).trim();
                    let id = if cursor.eat("[CALL_ID]") {
                        let end = cursor.rest.find('[')?;
                        Some(cursor.take(end).trim().to_owned())
                    } else {
                        None
                    };
                    cursor.eat("[ARGS]");
                    let input = cursor.object()?.to_owned();
                    calls.push(call(id, name, input));
                }
            }
            cursor.eat("</s>");
        }
        TextToolCalls::Llama => {
            cursor.eat("<|python_tag|>");
            loop {
                calls.push(json_call(cursor.object()?)?);
                cursor.eat(";");
                if !cursor.rest.starts_with('{') {
                    break;
                }
            }
            let _ = cursor.eat("<|eom_id|>") || cursor.eat("<|eot_id|>");
        }
        TextToolCalls::Harmony => {
            while !cursor.rest.is_empty() {
                let head = cursor.until("<|message|>")?;
                let Some((_, name)) = words::split_once(head, "to=functions.") else {
                    // What the model says before it calls.
                    let text = cursor.until("<|end|>")?;
                    calls.push(match words::split_once(head, "<|channel|>")?.1.trim() {
                        "analysis" => Piece::Thinking(text.to_owned()),
                        "commentary" | "final" => Piece::Text(text.to_owned()),
                        _ => return None,
                    });
                    continue;
                };
                let end = name.find([' ', '<', '\n']).unwrap_or(name.len());
                let name = name.get(..end)?;
                let input = cursor.object()?.to_owned();
                // The token that ends a call ends the answer, so servers take it for a stop token.
                if !cursor.eat("<|call|>") && !cursor.rest.is_empty() {
                    return None;
                }
                calls.push(call(None, name, input));
            }
        }
        TextToolCalls::Deepseek => {
            while !cursor.rest.is_empty() && !cursor.eat("<｜end▁of▁sentence｜>") {
                if cursor.eat("<｜tool▁calls▁begin｜>") {
                    while cursor.eat("<｜tool▁call▁begin｜>") {
                        calls.push(cursor.separated_call()?);
                    }
                    cursor.expect("<｜tool▁calls▁end｜>")?;
                    continue;
                }
                // The name of the section changed with V4; some servers cut it off.
                let end = if cursor.eat("<｜DSML｜tool_calls>") {
                    "</｜DSML｜tool_calls>"
                } else if cursor.eat("<｜DSML｜function_calls>") {
                    "</｜DSML｜function_calls>"
                } else {
                    ""
                };
                let before = calls.len();
                while cursor.eat("<｜DSML｜invoke name=\"") {
                    calls.push(cursor.marked_call(schemas)?);
                }
                cursor.expect(end)?;
                if calls.len() == before {
                    return None;
                }
            }
        }
    }
    if matches!(syntax, TextToolCalls::Hermes | TextToolCalls::QwenXml) {
        cursor.eat("<|im_end|>");
    }
    cursor.skip_blank();
    let is_call = |piece: &Piece| matches!(piece, Piece::Call { .. });
    let is_known = |piece: &Piece| match piece {
        Piece::Call { name, .. } => schemas(name).is_some(),
        _ => true,
    };
    (cursor.rest.is_empty() && calls.iter().any(is_call) && calls.iter().all(is_known))
        .then_some(calls)
}

fn call(id: Option<String>, name: &str, input: String) -> Piece {
    Piece::Call { id: id.filter(|id| !id.is_empty()), name: name.to_owned(), input }
}

/// Reads an object with a name and an input.
fn json_call(object: &str) -> Option<Piece> {
    let (mut name, mut id, mut input) = (None, None, "{}".to_owned());
    let mut reader = Reader::new(object, 128);
    reader.begin_object().ok()?;
    while let Some(key) = reader.next_key().ok()? {
        match key.raw() {
            "name" => name = Some(reader.string().ok()?.decode().into_owned()),
            "id" => id = reader.string().ok().map(|id| id.decode().into_owned()),
            "arguments" | "parameters" => match reader.kind().ok()? {
                Kind::Object => input = reader.skip().ok()?.to_owned(),
                Kind::Null => drop(reader.skip().ok()?),
                _ => {
                    let text = reader.string().ok()?.decode();
                    input = Cursor { rest: &text }.object()?.to_owned();
                }
            },
            _ => drop(reader.skip().ok()?),
        }
    }
    Some(call(id, &name?, input))
}

/// What is left to read. White space between tokens means nothing.
struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn skip_blank(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip_blank();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                self.skip_blank();
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Option<()> {
        self.eat(token).then_some(())
    }

    /// The text up to `end`, exactly as it is.
    fn until(&mut self, end: &str) -> Option<&'a str> {
        let (text, rest) = words::split_once(self.rest, end)?;
        self.rest = rest;
        Some(text)
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (text, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        text
    }

    fn object(&mut self) -> Option<&'a str> {
        self.skip_blank();
        let mut reader = Reader::new(self.rest, 127);
        if reader.kind().ok()? != Kind::Object {
            return None;
        }
        let object = reader.skip().ok()?;
        self.rest = self.rest.get(object.len()..)?;
        self.skip_blank();
        Some(object)
    }

    /// A DeepSeek call to V3.1: its name before its input, which older models put into a fence.
    fn separated_call(&mut self) -> Option<Piece> {
        let mut name = self.until("<｜tool▁sep｜>")?.trim();
        let is_fenced = name == "function" && !self.rest.trim_start().starts_with('{');
        if is_fenced {
            name = self.until("\n")?.trim();
            self.expect("```json")?;
        }
        let input = self.object()?.to_owned();
        if is_fenced {
            self.expect("```")?;
        }
        self.expect("<｜tool▁call▁end｜>")?;
        Some(call(None, name, input))
    }

    /// A DeepSeek call since V3.2, after the start of its name. Each member says whether it is a
    /// text.
    fn marked_call(&mut self, schemas: Schemas<'_>) -> Option<Piece> {
        let name = self.until("\"")?;
        let schema = schemas(name)?;
        let mut input = Object::default();
        if !self.eat("/>") {
            self.expect(">")?;
            while self.eat("<｜DSML｜parameter name=\"") {
                let key = self.until("\"")?;
                let is_text = match self.until(">")?.trim() {
                    "string=\"true\"" => true,
                    "string=\"false\"" | "" => false,
                    _ => return None,
                };
                let value = self.until("</｜DSML｜parameter>")?;
                if is_text {
                    input.text(key, value);
                } else {
                    input.member(key, value, schema);
                }
            }
            self.expect("</｜DSML｜invoke>")?;
        }
        Some(call(None, name, input.end()))
    }

    /// Members, each between tags.
    fn parameters(
        &mut self,
        open: &str,
        named: &str,
        close: &str,
        schema: &str,
        value: fn(&str) -> &str,
    ) -> Option<String> {
        let mut input = Object::default();
        self.skip_blank();
        while let Some(rest) = self.rest.strip_prefix(open) {
            self.rest = rest;
            let key = self.until(named)?.trim();
            input.member(key, value(self.until(close)?), schema);
            self.skip_blank();
        }
        Some(input.end())
    }
}

/// A value in lines of its own: a line break on each side is layout.
fn own_lines(value: &str) -> &str {
    let value = value.strip_prefix('\n').unwrap_or(value);
    value.strip_suffix('\n').unwrap_or(value)
}

/// An input that is put together member by member.
#[derive(Default)]
struct Object(Vec<u8>);

impl Object {
    /// A member whose value was written as plain text. Whether `5` is a number or a text, only the schema
    /// knows; where it does not say, it is what it looks like.
    fn member(&mut self, key: &str, value: &str, schema: &str) {
        let property = property(schema, key);
        let allows = |kind| property.is_some_and(|property| allows(schema, property, kind));
        let is_text = allows("string") && !(value.trim() == "null" && allows("null"));
        // Templates write what is no text as Python does.
        let value = match value.trim() {
            "True" if !is_text && allows("boolean") => "true",
            "False" if !is_text && allows("boolean") => "false",
            "None" if !is_text && allows("null") => "null",
            _ => value,
        };
        if self.0.is_empty() {
            self.0.push(b'{');
        }
        let mut reader = Reader::new(value, 64);
        let is_json = reader.kind().is_ok_and(|kind| kind != Kind::String)
            && reader.skip().is_ok()
            && reader.end().is_ok();
        let mut json = Writer::new(&mut self.0);
        json.key_text(key);
        if is_json && !is_text {
            json.value();
            json::compact(json.out(), value);
        } else {
            json.text(value);
        }
    }

    /// A member that is a text, exactly as it stands there.
    fn text(&mut self, key: &str, value: &str) {
        if self.0.is_empty() {
            self.0.push(b'{');
        }
        Writer::new(&mut self.0).key_text(key).text(value);
    }

    fn end(mut self) -> String {
        if self.0.is_empty() {
            self.0.push(b'{');
        }
        self.0.push(b'}');
        String::from_utf8(self.0).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{"properties":{"zip":{"type":["null","string"]},
        "one":{"anyOf":[{"type":"string"},{"type":"null"}]},"yes":{"type":"boolean"}}}"#;

    fn schemas(name: &str) -> Option<&'static str> {
        matches!(name, "w" | "t").then_some(SCHEMA)
    }

    #[track_caller]
    fn is(syntax: TextToolCalls, text: &str, expected: &str) {
        let show = |piece: Piece| match piece {
            Piece::Call { id, name, input } => {
                format!("{}{name}{input}", id.map(|id| format!("{id}=")).unwrap_or_default())
            }
            other => format!("{other:?}"),
        };
        let shown = read(syntax, text, &schemas)
            .map(|calls| calls.into_iter().map(show).collect::<Vec<_>>().join(" "));
        assert_eq!(shown.as_deref().unwrap_or("none"), expected, "{text}");
        // Whatever is cut off is no call.
        for end in 0..text.len() {
            if let Some(cut) = text.get(..end)
                && let Some(calls) = read(syntax, cut, &schemas)
            {
                for call in calls {
                    let Piece::Call { input, .. } = call else { continue };
                    assert!(serde_json::from_str::<serde_json::Value>(&input).is_ok());
                }
            }
        }
    }

    #[test]
    fn each_syntax_is_read() {
        use TextToolCalls::*;
        is(
            Hermes,
            "<tool_call>\n{\"name\": \"w\", \"arguments\": {\"a\": \"</tool_call>\"}}\n</tool_call>\n<tool_call>{\"name\":\"t\"}</tool_call>",
            "w{\"a\": \"</tool_call>\"} t{}",
        );
        is(
            Hermes,
            "<tool_call>{\"name\":\"w\",\"arguments\":\"{\\\"a\\\":1}\"}</tool_call>",
            "w{\"a\":1}",
        );
        is(
            QwenXml,
            "<tool_call>\n<function=w>\n<parameter=city>\nParis\n</parameter>\n<parameter=n>5</parameter><parameter=zip>075</parameter></function>\n</tool_call>",
            "w{\"city\":\"Paris\",\"n\":5,\"zip\":\"075\"}",
        );
        is(QwenXml, "<function=t>\n</function>", "t{}");
        is(QwenXml, "<function=t>\n</function>\n</tool_call><|im_end|>", "t{}");
        is(Hermes, "<tool_call>{\"name\":\"w\"}</tool_call><|im_end|>\n", "w{}");
        is(
            QwenXml,
            "<function=w><parameter=one>5</parameter><parameter=yes>\nTrue\n</parameter></function>",
            "w{\"one\":\"5\",\"yes\":true}",
        );
        is(
            QwenXml,
            "<function=w><parameter=one>null</parameter><parameter=zip>None</parameter></function>",
            "w{\"one\":null,\"zip\":\"None\"}",
        );
        is(
            Mistral,
            "[TOOL_CALLS] [{\"name\": \"w\", \"arguments\": {\"a\":1}, \"id\":\"abcdefghi\"}, {\"name\":\"t\",\"arguments\":{}}]",
            "abcdefghi=w{\"a\":1} t{}",
        );
        is(
            Mistral,
            "[TOOL_CALLS]w[ARGS]{\"a\":1}[TOOL_CALLS]t[CALL_ID]x1[ARGS]{}</s>",
            "w{\"a\":1} x1=t{}",
        );
        is(
            Kimi,
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.w:0<|tool_call_argument_begin|>{\"a\":1}<|tool_call_end|><|tool_call_begin|>functions.t:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
            "functions.w:0=w{\"a\":1} functions.t:1=t{}",
        );
        is(
            Glm,
            "<tool_call>w\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n<arg_key>zip</arg_key><arg_value>075</arg_value>\n</tool_call>",
            "w{\"city\":\"Paris\",\"zip\":\"075\"}",
        );
        is(Glm, "<tool_call>t</tool_call>", "t{}");
        // These templates put nothing around a value.
        is(
            Glm,
            "<tool_call>w<arg_key>one</arg_key>\n<arg_value>    return x\n</arg_value></tool_call>",
            "w{\"one\":\"    return x\\n\"}",
        );
        is(
            Minimax,
            "<minimax:tool_call><invoke name=\"w\"><parameter name=\"one\">\tx\n</parameter></invoke></minimax:tool_call>",
            "w{\"one\":\"\\tx\\n\"}",
        );
        is(
            Llama,
            "<|python_tag|>{\"type\": \"function\", \"name\": \"w\", \"parameters\": {\"a\":1}}; {\"name\":\"t\",\"parameters\":{}}<|eom_id|>",
            "w{\"a\":1} t{}",
        );
        is(
            Minimax,
            "<minimax:tool_call>\n<invoke name=\"w\">\n<parameter name=\"city\">Paris</parameter>\n<parameter name=\"list\">[1, 2]</parameter>\n</invoke>\n</minimax:tool_call>",
            "w{\"city\":\"Paris\",\"list\":[1,2]}",
        );
        is(
            Harmony,
            "<|channel|>commentary to=functions.w <|constrain|>json<|message|>{\"a\":1}<|call|>",
            "w{\"a\":1}",
        );
        is(
            Harmony,
            "<|start|>assistant to=functions.t<|channel|>commentary json<|message|>{}",
            "t{}",
        );
        is(
            Harmony,
            "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>analysis<|message|>Hm<|end|><|start|>assistant to=functions.t<|channel|>commentary<|message|>{}",
            "Text(\"I look.\") Thinking(\"Hm\") t{}",
        );
    }

    #[test]
    fn calls_of_all_deepseek_models_are_read() {
        use TextToolCalls::Deepseek;
        for section in ["tool_calls", "function_calls"] {
            is(
                Deepseek,
                &format!(
                    "<｜DSML｜{section}>\n<｜DSML｜invoke name=\"w\">\n\
                     <｜DSML｜parameter name=\"a\" string=\"true\">\n5 </｜DSML｜parameter>\n\
                     <｜DSML｜parameter name=\"b\" string=\"false\">[1, {{\"c\":null}}]</｜DSML｜parameter>\n\
                     </｜DSML｜invoke>\n<｜DSML｜invoke name=\"t\"/>\n</｜DSML｜{section}><｜end▁of▁sentence｜>"
                ),
                "w{\"a\":\"\\n5 \",\"b\":[1,{\"c\":null}]} t{}",
            );
        }
        is(
            Deepseek,
            "<｜DSML｜invoke name=\"w\"><｜DSML｜parameter name=\"zip\">075</｜DSML｜parameter></｜DSML｜invoke>",
            "w{\"zip\":\"075\"}",
        );
        is(
            Deepseek,
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>w<｜tool▁sep｜>{\"a\":1}<｜tool▁call▁end｜><｜tool▁call▁begin｜>t<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            "w{\"a\":1} t{}",
        );
        is(
            Deepseek,
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>w\n```json\n{\"a\":1}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            "w{\"a\":1}",
        );
        for doubtful in [
            "<｜DSML｜tool_calls></｜DSML｜tool_calls>",
            "<｜DSML｜tool_calls><｜DSML｜invoke name=\"w\"></｜DSML｜invoke>",
            "<｜DSML｜tool_calls><｜DSML｜invoke name=\"w\"></｜DSML｜invoke></｜DSML｜function_calls>",
            "<｜DSML｜invoke name=\"rm\"></｜DSML｜invoke>",
            "<｜DSML｜invoke name=\"w\"></｜DSML｜invoke> runs w.",
            "<｜DSML｜invoke name=\"w\"><｜DSML｜parameter name=\"a\" string=\"maybe\">1</｜DSML｜parameter></｜DSML｜invoke>",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>w<｜tool▁sep｜>{\"a\":1}<｜tool▁calls▁end｜>",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>w\n```json\n{\"a\":1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        ] {
            is(Deepseek, doubtful, "none");
        }
    }

    #[test]
    fn doubtful_text_is_no_call() {
        use TextToolCalls::*;
        is(Hermes, "<tool_call>{\"name\":\"rm\"}</tool_call>", "none");
        is(Hermes, "<tool_call>{\"name\":\"w\"}</tool_call> like this", "none");
        is(Hermes, "<tool_call>{\"name\":\"w\"}", "none");
        is(Hermes, "", "none");
        is(QwenXml, "<tool_call><function=w></tool_call>", "none");
        is(Glm, "<tool_call>{\"name\":\"w\"}</tool_call>", "none");
        is(Llama, "{\"city\":\"Paris\"}", "none");
        is(Mistral, "[TOOL_CALLS] [{\"name\":\"w\"}", "none");
        is(Harmony, "<|channel|>commentary<|message|>Let me see.<|end|>", "none");
        is(
            Harmony,
            "<|channel|>other<|message|>x<|end|><|start|>assistant to=functions.t<|message|>{}",
            "none",
        );
    }
}
