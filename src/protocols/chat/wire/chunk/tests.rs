//! Tests of `chunk.rs`.

use super::*;
use crate::protocols::chat::wire::Arguments;

#[test]
fn fields_of_another_type_count_as_absent() {
    let chunk = Chunk::read(
        r#"{"id":7,"model":null,"choices":[null,3,{"index":"1","delta":{"content":{},
                "reasoning":{"a":1},"tool_calls":["x",{"index":0.0,"id":3,"function":[]},
                {"index":0.0,"id":3,"function":{"name":"f","arguments":null}}]},
                "finish_reason":12,"stop_reason":128009,"logprobs":{}}],"usage":"none","error":{}}"#,
    )
    .unwrap();
    assert!(chunk.id.is_none() && chunk.usage.is_none() && !chunk.error && !chunk.failed);
    let choice = chunk.choices.iter().next().unwrap();
    assert_eq!(choice.index, 1);
    assert!(choice.finish_reason.is_none() && choice.stop_sequence.is_none());
    let delta = choice.delta.as_ref().unwrap();
    assert!(delta.content.is_empty() && delta.reasoning.is_none());
    // The first call is empty, and is not kept.
    let calls: Vec<_> = delta.tool_calls.iter().collect();
    let [call] = calls.as_slice() else { panic!("{calls:?}") };
    assert_eq!((call.index, call.id, call.arguments), (Some(0), None, Arguments::None));
}

#[test]
fn a_finish_reason_may_stand_beside_the_choices_or_in_a_list() {
    for text in [
        r#"{"choices":[{"index":0,"delta":{}}],"finish_reason":"stop"}"#,
        r#"{"finish_reason":"stop","choices":[{"index":0},{"index":1,"finish_reason":null}]}"#,
        r#"{"choices":[{"finish_reason":"stop"}],"finish_reason":"length"}"#,
        r#"{"choices":[{"finish_reason":["stop"]}]}"#,
        r#"{"choices":[{"finish_reason":[null,"stop",""]}]}"#,
    ] {
        let chunk = Chunk::read(text).unwrap();
        let word = chunk.choices.iter().filter_map(|choice| choice.finish_reason).last();
        assert_eq!(word.map(|word| word.raw()), Some("stop"), "{text}");
    }
}

#[test]
fn a_message_is_a_complaint_unless_all_is_well() {
    let read = |members: &str| {
        let text = format!("{{\"choices\":null,{members}}}");
        let chunk = Chunk::read(&text).unwrap();
        (chunk.complains, chunk.failed)
    };
    for well in [
        r#""message":"success""#,
        r#""msg":"OK","code":10000"#,
        r#""message":"Done.","code":"200""#,
        r#""message":"Done.","code":"Success""#,
        r#""code":500,"message":"success!""#,
        r#""message":"""#,
    ] {
        assert_eq!(read(well), (false, false), "{well}");
    }
    for doubtful in [r#""message":"Done.","code":10000"#, r#""message":"no","code":null"#] {
        assert_eq!(read(doubtful), (true, false), "{doubtful}");
    }
    for refused in [r#""message":"no","code":"429""#, r#""code":503,"msg":"Overloaded""#] {
        assert_eq!(read(refused), (true, true), "{refused}");
    }
}

#[test]
fn a_text_beside_the_code_of_an_error_says_what_failed() {
    let failed = |text: &str| Chunk::read(text).unwrap().failed;
    assert!(failed(r#"{"text":"**NETWORK ERROR**","error_code":50002}"#));
    assert!(failed(r#"{"errcode":"336003","text":"no"}"#));
    for fine in [
        r#"{"text":"a","error_code":0}"#,
        r#"{"text":"a","error_code":200}"#,
        r#"{"text":"a","error_code":null}"#,
        r#"{"text":"a","code":50002}"#,
        r#"{"text":"","error_code":50002}"#,
    ] {
        assert!(!failed(fine), "{fine}");
    }
}
