//! Tests of each syntax, and of texts that are no calls.

use super::*;
use crate::model::request_context::{self, Tool};

fn read(
    name: TextToolCalls,
    text: &str,
    extent: Extent,
    tools: FindTool<'_>,
) -> Option<Vec<Piece>> {
    Syntax::of(name)?.read(text, extent, tools)
}

const SCHEMA: &str = r#"{"properties":{"city":{},"n":{},"zip":{"type":["null","string"]},
    "one":{"anyOf":[{"type":"string"},{"type":"null"}]},"yes":{"type":"boolean"}}}"#;

fn tools() -> request_context::Tools {
    let mut tools = request_context::Tools::default();
    for name in ["w", "t"] {
        let (outgoing, name) = (name.to_owned(), name.to_owned());
        let schema = Some(SCHEMA.into());
        tools.push(Tool { outgoing, name, schema, ..Tool::default() });
    }
    tools
}

#[track_caller]
fn is(syntax: TextToolCalls, text: &str, expected: &str) {
    let tools = tools();
    let show = |piece: Piece| match piece {
        Piece::Call { id, name, input } => {
            format!("{}{name}{input}", id.map(|id| format!("{id}=")).unwrap_or_default())
        }
        other => format!("{other:?}"),
    };
    let shown = read(syntax, text, Extent::default(), &|name| tools.meant_by(name))
        .map(|calls| calls.into_iter().map(show).collect::<Vec<_>>().join(" "));
    assert_eq!(shown.as_deref().unwrap_or("none"), expected, "{text}");
    // A text that is cut off has no call with an incomplete input.
    for end in 0..text.len() {
        if let Some(cut) = text.get(..end)
            && let Some(calls) = read(syntax, cut, Extent::default(), &|name| tools.meant_by(name))
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
    // The templates of GLM and MiniMax put no white space around a value.
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
        Llama,
        "[{\"name\": \"w\", \"parameters\": {\"a\":1}},\n {\"name\":\"t\",\"parameters\":{}}]<|eot_id|>",
        "w{\"a\":1} t{}",
    );
    is(Llama, "[{\"name\": \"w\", \"parameters\": {\"a\":1}}", "none");
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
    is(Harmony, "<|start|>assistant to=functions.t<|channel|>commentary json<|message|>{}", "t{}");
    is(
        Harmony,
        "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>analysis<|message|>Hm<|end|><|start|>assistant to=functions.t<|channel|>commentary<|message|>{}",
        "Text(\"I look.\") Thinking(ReasoningContent, \"Hm\") t{}",
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
        "<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"w\">\n{\"a\": \"</｜DSML｜ invoke>\"}\n</｜DSML｜ invoke>\n</｜DSML｜ calls>",
        "w{\"a\": \"</｜DSML｜ invoke>\"}",
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
        "<｜DSML｜tool_calls><｜DSML｜invoke name=\"w\"></｜DSML｜invoke></｜DSML｜function_calls>",
        "<｜DSML｜invoke name=\"rm\"></｜DSML｜invoke>",
        "<｜DSML｜invoke name=\"w\">{\"a\":1}{\"a\":2}</｜DSML｜invoke>",
        "<｜DSML｜invoke name=\"w\">{\"a\":1}<｜DSML｜parameter name=\"a\">1</｜DSML｜parameter></｜DSML｜invoke>",
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
    is(Hermes, "", "none");
    is(QwenXml, "<tool_call><function=w></tool_call>", "none");
    is(Glm, "<tool_call>{\"name\":\"w\"}</tool_call>", "none");
    is(Llama, "{\"city\":\"Paris\"}", "none");
    is(Harmony, "<|channel|>commentary", "none");
}

#[test]
fn a_value_ends_before_the_next_parameter() {
    use TextToolCalls::*;
    let call = "w{\"city\":\"Paris\",\"n\":3}";
    for text in [
        "<tool_call>\n<function=w>\n<parameter=city>\nParis\n<parameter=n>\n3\n</parameter>\n</function>\n</tool_call>",
        "<function=w>\n<parameter=city>\nParis\n</parameter>\n<parameter=n>\n3\n</function>",
        "<function=w>\r\n<parameter=city>\r\nParis\r\n<parameter=n>\r\n3\r\n</parameter>\r\n</function>",
    ] {
        is(QwenXml, text, call);
    }
    is(
        QwenXml,
        "<function=w><parameter=city>a <parameter=n> b\n\n</parameter></function>",
        "w{\"city\":\"a <parameter=n> b\\n\"}",
    );
    // In other syntaxes than Qwen's, no server accepts a parameter without its end tag.
    for (syntax, text) in [
        (
            Glm,
            "<tool_call>w<arg_key>city</arg_key><arg_value>Paris<arg_key>n</arg_key><arg_value>3</arg_value></tool_call>",
        ),
        (
            Glm,
            "<tool_call>w<arg_key>city<arg_value>Paris</arg_value><arg_key>n</arg_key><arg_value>3</arg_value></tool_call>",
        ),
        (
            Minimax,
            "<minimax:tool_call><invoke name=\"w\"><parameter name=\"city\">Paris<parameter name=\"n\">3</parameter></invoke></minimax:tool_call>",
        ),
        (
            Deepseek,
            "<｜DSML｜invoke name=\"w\"><｜DSML｜parameter name=\"city\" string=\"true\">Paris<｜DSML｜parameter name=\"n\">3</｜DSML｜parameter></｜DSML｜invoke>",
        ),
    ] {
        is(syntax, text, "none");
    }
}

#[test]
fn a_stop_token_may_follow_the_markup() {
    use TextToolCalls::*;
    let kimi = "<|tool_call_section_begin|><|tool_call_begin|>functions.w:0<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_call_section_end|>";
    is(Kimi, &format!("{kimi}<|im_end|>"), "functions.w:0=w{}");
    is(Kimi, &kimi.replace("call_section", "calls_section"), "functions.w:0=w{}");
    is(Glm, "<tool_call>t</tool_call><|observation|>", "t{}");
    is(
        Minimax,
        "<minimax:tool_call><invoke name=\"t\"></invoke></minimax:tool_call>\n[e~[\n",
        "t{}",
    );
    is(Glm, "<tool_call>t</tool_call><|observation|>more", "none");
    is(Glm, "<tool_call>t</tool_call><|other|>", "none");
}

#[test]
fn analysis_of_harmony_is_thinking() {
    use TextToolCalls::Harmony;
    let think = "<|channel|>analysis<|message|>Think.<|end|><|start|>assistant";
    is(Harmony, "<|channel|>analysis to=functions.t <|constrain|>json<|message|>{}<|call|>", "t{}");
    is(
        Harmony,
        &format!(
            "{think}<|channel|>commentary to=functions.w <|constrain|>json<|message|>{{}}<|call|>"
        ),
        "Thinking(ReasoningContent, \"Think.\") w{}",
    );
    for end in ["", "<|end|>", "<|return|>"] {
        is(
            Harmony,
            &format!("{think}<|channel|>final<|message|>Hi <b>{end}"),
            "Thinking(ReasoningContent, \"Think.\") Text(\"Hi <b>\")",
        );
    }
    // A message without an end may show how a call looks.
    is(
        Harmony,
        "<|channel|>final<|message|>So:\n<|start|>assistant<|channel|>commentary to=functions.w<|message|>{}<|call|>",
        "Text(\"So:\\n\\n\\n{}\")",
    );
    // Servers leave control tokens at the end of an answer.
    is(Harmony, "<|channel|>final<|message|>Hi<|end|><|return|>", "Text(\"Hi\")");
    is(
        Harmony,
        "<|channel|>commentary to=functions.t<|message|>{}<|call|><|start|>assistant",
        "t{}",
    );
    is(
        Harmony,
        "<|channel|>other<|message|>x<|end|><|start|>assistant to=functions.t<|message|>{}",
        "Text(\"x\") t{}",
    );
}
