//! Tests of `half_call.rs`.

use super::*;
use crate::model::request_context::Tool;

fn tools() -> Tools {
    let mut tools = Tools::default();
    for name in ["get_weather", "w"] {
        tools.push(Tool { outgoing: name.into(), name: name.into(), ..Tool::default() });
    }
    tools
}

#[test]
fn a_call_is_found_wherever_the_limit_cut_it() {
    for (before, call) in [
        ("", "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Par"),
        ("Let me look.\n", "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"c"),
        ("Sure.", "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {"),
        ("So:\n", "<tool_call>\n<function=get_weather>\n<parameter=city>\nPar"),
        ("", "<function=get_weather>\n<parameter=city>"),
        ("", "[TOOL_CALLS] [{\"name\": \"get_weather\", \"arguments\": {\"c"),
        ("", "[TOOL_CALLS]get_weather{\"c"),
        (
            "Hm. ",
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{\"c",
        ),
        ("", "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Par"),
        ("", "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"c"),
        (
            "",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{",
        ),
        ("", "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜par"),
        ("", "<|tool_call>call:get_weather{city:<|\"|>Par"),
        ("", "<|tool_call_start|>[get_weather(city=\"Par"),
    ] {
        let text = [before, call].concat();
        let tools = tools();
        // Length of the text up to the end of the call's first mark.
        let first = MARKS.iter().find_map(|(open, _)| call.strip_prefix(open)).unwrap();
        let first = text.len() - first.len();
        for (end, _) in text.char_indices().filter(|(end, _)| *end > first) {
            let cut = text.get(..end).unwrap();
            // A text that ends inside of a control token or tag shows no call yet.
            let is_in_tag = cut.rfind('<') > cut.rfind('>');
            if !is_in_tag {
                assert_eq!(start(cut, &tools), Some(before.len()), "{cut}");
            }
        }
    }
}

#[test]
fn whole_calls_before_the_half_one_are_no_text_either() {
    let call = "<tool_call>\n{\"name\": \"w\", \"arguments\": {}}\n</tool_call>\n";
    let half = "<tool_call>\n{\"name\": \"w\", \"arg";
    assert_eq!(start(&["So.\n", call, call, half].concat(), &tools()), Some(4));
    assert_eq!(start(&[call, "So.\n", half].concat(), &tools()), Some(call.len() + 4));
    assert_eq!(start(&["So.\n", call, call].concat(), &tools()), None);
}

// WebAssembly has no clock for the time of one thread, and wall-clock time includes other
// processes.
#[cfg(not(target_family = "wasm"))]
#[test]
fn many_whole_calls_before_the_half_one_cost_no_square_of_their_number() {
    let fastest = |count: usize| {
        let call = "<|tool_call_begin|>w{}<|tool_call_end|>";
        let text = call.repeat(count) + "<|tool_call_begin|>w{";
        let once = |_| {
            let begun = cpu_time::ThreadTime::now();
            assert_eq!(start(&text, &tools()), Some(0));
            begun.elapsed()
        };
        (0..5).map(once).min().unwrap()
    };
    let (few, many) = (fastest(1_500), fastest(24_000));
    assert!(many < few * 16 * 5, "{few:?}, {many:?}");
}

#[test]
fn a_bare_call_is_all_of_the_answer() {
    for call in [
        "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Par",
        "{\"type\": \"function\", \"name\": \"w\", \"parameters\": {",
        "[get_weather(city=\"Par",
        "[w(), get_weather(city=\"Par",
    ] {
        assert_eq!(start(call, &tools()), Some(0), "{call}");
    }
}

#[test]
fn a_text_about_calls_stays_text() {
    for text in [
        "",
        "Hello",
        "Write `<tool_call>\n{\"name\": \"w\"",
        "Write:\n```\n<tool_call>\n{\"name\": \"w\"",
        "Write <tool_call>{\"name\": \"w\"",
        "<tool_call>\n{\"name\": \"rm\", \"arguments\": {",
        "<tool_call>\nis how a call begins, and",
        "<tool_call>\n{\"name\": \"w\", \"arguments\": {}}\n</tool_call> is a call, as",
        "{\"name\": \"get_weather\", \"version\": \"1",
        "{\"name\": \"Ada\", \"parameters\": {\"a",
        "{\"name\": \"w\", \"parameters\": {}}",
        "[w](http://a) is (a",
        "[1] says (so",
        "[w(a=1)]",
    ] {
        assert_eq!(start(text, &tools()), None, "{text}");
    }
    assert_eq!(start("<tool_call>\n{\"name\": \"w", &Tools::default()), None);
}
