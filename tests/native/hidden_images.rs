//! Images in the texts of results, for an upstream that speaks Messages.

use super::*;

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB";

fn body(content: &str) -> String {
    format!(
        r#"{{ "model":"m","max_tokens":9 ,"new":[1.0], "messages":[{{"role":"user","content":"q"}},
        {{"role":"assistant","content":[{{"type":"tool_use","id":"t","name":"w","input":{{}}}}]}},
        {{"role":"user","content":[{{"x":1,"type":"tool_result","tool_use_id":"t","content":{content} }},
            {{"type":"text","text":"go  on"}}]}}]}}"#
    )
}

fn mcp() -> String {
    format!(r#"{{"type":"image","data":"{PNG}","mimeType":"image/jpeg"}}"#)
}

/// An image as the real API has it, with members behind its source.
fn image(more: &str) -> String {
    format!(
        r#"{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{PNG}"}}{more}}}"#
    )
}

fn sent_of(config: &Arc<Config>, body: &str) -> (String, String) {
    let Ok((exchange, call)) = drive::request(config, "/v1/messages", &[], body.as_bytes()) else {
        panic!("it is refused");
    };
    let warnings = exchange.report().warnings.header().unwrap_or_default();
    (String::from_utf8(call.body).unwrap(), warnings)
}

#[test]
fn a_text_that_is_an_image_becomes_one_and_the_rest_stays_byte_for_byte() {
    let (mcp, quoted) = (mcp(), json!(mcp()).to_string());
    let both = json!(format!(r#"[{{"type":"text","text":"a\"\n"}},{mcp}]"#)).to_string();
    let mark = r#","cache_control":{"type":"ephemeral","ttl":"1h"}"#;
    let words = r#"{"type":"text","text":"a\"\n"}"#;
    let stays = r#"{"type":"text","text":"an image"}"#;
    for (given, expected) in [
        (quoted.clone(), format!("[{}]", image(""))),
        (both.clone(), format!("[{words},{}]", image(""))),
        (
            format!(r#"[ {stays} , {{"type":"text","text":{both}{mark}}} ,{stays}]"#),
            format!("[ {stays} , {words},{} ,{stays}]", image(mark)),
        ),
    ] {
        let (sent, warnings) = sent_of(&config(), &body(&given));
        assert_eq!(sent, body(&expected));
        assert_eq!(warnings, "image_in_text");
    }
    let blind = drive::config(
        r#"{"log":"off","upstreams":{"kimi":{"url":"https://kimi.test","protocol":"anthropic",
            "profile_overrides":{"image_parts":"none"}}}}"#,
    );
    for config in [config_with(None, r#","strict":true"#), blind] {
        assert_eq!(sent_of(&config, &body(&quoted)), (body(&quoted), String::new()));
    }
    // Other words, and a user's own.
    for given in [json!("an image").to_string(), format!("[{}]", image(""))] {
        assert_eq!(sent_of(&config(), &body(&given)), (body(&given), String::new()));
    }
    let own = body("[]").replace("\"go  on\"", &quoted);
    assert_eq!(sent_of(&config(), &own), (own.clone(), String::new()));
}

#[test]
fn a_result_keeps_its_cache_mark_when_its_last_block_becomes_an_image() {
    let marked = |content: &str| {
        body(content).replace(r#""x":1"#, r#""cache_control":{"type":"ephemeral","ttl":"5m"}"#)
    };
    let quoted = json!(mcp()).to_string();
    for (given, shown) in [
        (quoted.clone(), format!("[{}]", image(""))),
        (format!(r#"[{{"type":"text","text":{quoted}}}]"#), format!("[{}]", image(""))),
    ] {
        assert_eq!(sent_of(&config(), &marked(&given)).0, marked(&shown));
    }
}

#[test]
fn an_image_in_a_text_counts_as_an_image() {
    let data = format!("{PNG}{}", "Ab9/".repeat(100_000));
    let given = body(&json!(mcp().replace(PNG, &data)).to_string());
    let counted = drive::request(&config(), "/v1/messages/count_tokens", &[], given.as_bytes());
    let Err(counted) = counted else { panic!("it is counted here") };
    let counted: Value = serde_json::from_slice(&counted.body).unwrap();
    assert!(counted["input_tokens"].as_u64().unwrap() < 5_000, "{counted}");
}

#[test]
fn a_result_that_tells_of_an_error_keeps_its_text() {
    let quoted = json!(mcp()).to_string();
    let told = |is_error: &str, content: &str| {
        body(content).replace(r#""x":1"#, &format!(r#""is_error":{is_error}"#))
    };
    for given in [quoted.clone(), format!(r#"[{{"type":"text","text":{quoted}}}]"#)] {
        let given = told("true", &given);
        assert_eq!(sent_of(&config(), &given), (given.clone(), String::new()));
    }
    let (sent, warnings) = sent_of(&config(), &told("false", &quoted));
    assert_eq!(sent, told("false", &format!("[{}]", image(""))));
    assert_eq!(warnings, "image_in_text");
    // Beside another result, which tells of none.
    let result = format!(r#"{{"type":"tool_result","tool_use_id":"t","content":{quoted}}}"#);
    let both = told("true", &quoted).replace(r#"{"type":"text","text":"go  on"}"#, &result);
    let (sent, _) = sent_of(&config_with(None, r#","guards":{"pairing":"off"}"#), &both);
    let shown = result.replace(&quoted, &format!("[{}]", image("")));
    assert_eq!(sent, both.replace(&result, &shown));
}

#[test]
fn a_text_that_says_nothing_beside_an_image_leaves() {
    let empty = r#"{"type":"text","text":""}"#;
    let blank = r#"{"type":"text","text":" \n"}"#;
    let mcp = mcp();
    for given in [format!("[{mcp},{empty}]"), format!("[{blank},{mcp},{blank}]")] {
        let (sent, _) = sent_of(&config(), &body(&json!(given).to_string()));
        assert_eq!(sent, body(&format!("[{}]", image(""))), "{given}");
    }
    let none = json!(format!("[{empty}]")).to_string();
    assert_eq!(sent_of(&config(), &body(&none)).0, body(&none));
}

#[test]
fn an_upstream_that_refuses_images_is_asked_again_without_those_in_texts() {
    let omitted = r#"[{"type":"text","text":"[image omitted: this model does not take images]"}]"#;
    let read = |content: &str| serde_json::from_str::<Value>(&body(content)).unwrap();
    let given = read(&json!(mcp()).to_string());
    for message in ["this model does not support image input", "Could not process image"] {
        let (sent, warnings) = refused::again(&config(), &given, 400, message).expect(message);
        assert_eq!(sent, read(omitted));
        assert_eq!(warnings, "image_in_text,dropped:image,images_refused");
    }
}
