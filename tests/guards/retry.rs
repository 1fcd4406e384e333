//! Upstreams that refuse pairs although they were repaired.

use super::*;

const MISTRAL: &str = r#"{"object":"error","message":"Unexpected role 'user' after role 'tool'","type":"invalid_request_message_order","param":null,"code":"3230"}"#;

fn history() -> Vec<Value> {
    vec![
        user("Do it"),
        call("toolu_alpha1", "look", json!({"q": "x"})),
        answered(result("toolu_alpha1", "a.txt")),
        call("toolu_beta22", "look", json!({"q": "y"})),
        answered(result("toolu_beta22", "b.txt")),
        user("And?"),
    ]
}

/// Refuses with `refusal` as long as there are tool messages that `refuses` names.
fn picky(refusal: (u16, Value), refuses: &'static str) -> impl Fn(&Value) -> (u16, Value) {
    move |body| {
        let messages = body["messages"].as_array().unwrap();
        let refused = messages
            .iter()
            .any(|message| message["tool_call_id"].as_str().is_some_and(|id| id.contains(refuses)));
        if refused { refusal.clone() } else { (200, says("fine")) }
    }
}

fn asked(guards: Value, upstream: Upstream<'_>, retries: bool) -> Turn {
    let body = request(&history(), &[tool("look", &[])]);
    ask(&config(guards), &body, upstream, retries)
}

#[test]
fn a_host_that_can_asks_once_more_without_the_calls() {
    let refusal = (400, serde_json::from_str(MISTRAL).unwrap());
    let turn = asked(json!({}), &picky(refusal, ""), true);
    assert_eq!((turn.head.status, turn.asked), (200, 2));
    assert_eq!(turn.header("x-creole-guard"), "pairing");
    assert_eq!(turn.header("x-creole-warnings"), "pairing_refused");
    // What was called and what it gave stays, in words; neighbours of one side are one message.
    let text = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(
        turn.sent["messages"],
        json!([user(json!([
            text("Do it"),
            text("[Tool call look {\"q\":\"x\"} gave: a.txt]"),
            text("[Tool call look {\"q\":\"y\"} gave: b.txt]"),
            text("And?"),
        ]))])
    );
    assert_eq!(turn.tools(), ["look"]);
}

#[test]
fn what_two_agents_said_stays_apart_without_the_calls() {
    let said = |text: &str| json!({"role": "assistant", "content": text});
    let mut history = history();
    history.insert(1, said("a"));
    history.insert(2, said("b"));
    // These are one message, of which nothing is left.
    history.insert(3, call("toolu_gamma3", "look", json!({"q": "z"})));
    history[5]["content"].as_array_mut().unwrap().push(result("toolu_gamma3", "c.txt"));
    let refusal = (400, serde_json::from_str(MISTRAL).unwrap());
    let body = request(&history, &[tool("look", &[])]);
    let turn = ask(&config(json!({})), &body, &picky(refusal, ""), true);
    let sent = turn.sent["messages"].as_array().unwrap();
    let roles: Vec<_> = sent.iter().map(|it| it["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert_eq!(sent[1], said("a\n\nb"));
}

#[test]
fn only_the_calls_that_the_error_names_are_told_in_words() {
    let message = "Invalid parameter: 'tool_call_id' of 'call_beta22' not found in 'tool_calls' of previous message.";
    let refusal = (400, json!({"error": {"message": message}}));
    let turn = asked(json!({}), &picky(refusal, "beta"), true);
    assert_eq!((turn.head.status, turn.asked), (200, 2));
    assert_eq!(turn.tool_texts(), ["a.txt"]);
    assert!(turn.sent.to_string().contains("[Tool call look {\\\"q\\\":\\\"y\\\"} gave: b.txt]"));
    chat::check(&turn.sent, chat::Rules::default()).unwrap();
}

#[test]
fn an_id_that_begins_as_the_one_that_is_named_is_another() {
    let ids = ["toolu_1", "toolu_10", "toolu_x_10"];
    let pair = |id: &&str| [call(id, "look", json!({})), answered(result(id, *id))];
    let mut history = vec![user("Do it")];
    history.extend(ids.iter().flat_map(pair));
    let message = "No tool output found for function call call_10.";
    let refuses = |body: &Value| match body.to_string().contains("\"call_10\"") {
        true => (400, json!({"error": {"message": message}})),
        false => (200, says("fine")),
    };
    let body = request(&history, &[tool("look", &[])]);
    let turn = ask(&config(json!({})), &body, &refuses, true);
    assert_eq!((turn.head.status, turn.asked), (200, 2));
    assert_eq!(turn.tool_texts(), ["toolu_1", "toolu_x_10"]);
}

#[test]
fn others_tell_the_client_to_try_again() {
    let always = (400, serde_json::from_str(MISTRAL).unwrap());
    for (turn, asks) in [
        (asked(json!({}), &picky(always.clone(), ""), false), 1),
        // It refuses the second request, too.
        (asked(json!({}), &|_| (400, serde_json::from_str(MISTRAL).unwrap()), true), 2),
    ] {
        assert_eq!((turn.head.status, turn.asked), (529, asks));
        assert_eq!(turn.body["error"]["type"], "overloaded_error");
        assert_eq!(turn.header("x-should-retry"), "true");
        assert_eq!(turn.header("x-creole-guard"), "pairing");
        assert_eq!(turn.header("x-creole-warnings"), "pairing_refused");
        assert!(turn.message().contains("Unexpected role 'user' after role 'tool'"));
    }
}

#[test]
fn other_errors_and_other_settings_are_not_tried_again() {
    let other = (400, json!({"error": {"message": "Invalid schema for function 'look'"}}));
    let turn = asked(json!({}), &picky(other, ""), true);
    assert_eq!((turn.head.status, turn.asked, turn.header("x-creole-guard")), (400, 1, ""));
    let pairing: (u16, Value) = (400, serde_json::from_str(MISTRAL).unwrap());
    let turn = asked(json!({"pairing": "off"}), &picky(pairing.clone(), ""), true);
    assert_eq!((turn.head.status, turn.asked), (400, 1));
    // Nothing in this request can be meant.
    let body = request(&[user("q")], &[]);
    let turn = ask(&config(json!({})), &body, &|_| pairing.clone(), true);
    assert_eq!((turn.head.status, turn.asked), (400, 1));
    // Too many requests says nothing of pairs.
    let busy = (429, serde_json::from_str(MISTRAL).unwrap());
    assert_eq!(asked(json!({}), &picky(busy, ""), true).head.status, 429);
}

#[test]
fn a_second_try_that_fails_is_reported_without_the_head_of_the_first() {
    let body = request(&history(), &[tool("look", &[])]).to_string();
    let mut exchange = Exchange::new(
        config(json!({})),
        SEED,
        HostCan { ping: Pings::Sent, ask_again: true, ..HostCan::default() },
    );
    exchange.decide("POST", "/v1/messages", &headers(&[("x-api-key", "k")]));
    exchange.request(body.as_bytes(), NOW).unwrap();
    exchange.handle_call_head(400, &headers(&[("x-request-id", "first")]), NOW);
    let mut out = Vec::new();
    exchange.piece(MISTRAL.as_bytes(), NOW, &mut out);
    assert_eq!(exchange.end(End::Complete, NOW, &mut out), None);
    exchange.poll_call(NOW).unwrap();
    let head = exchange.end(End::Aborted, NOW, &mut out).unwrap();
    let report = exchange.report();
    assert_eq!((head.status, report.failed_by), (502, Some(Cause::Unreachable)));
    assert_eq!((report.upstream_status, report.head_at), (None, None));
    assert_eq!(report.upstream_request_id, None);
}

#[test]
fn a_second_request_may_take_as_long_as_the_first() {
    let body = request(&history(), &[tool("look", &[])]).to_string();
    let mut exchange = Exchange::new(
        config(json!({})),
        SEED,
        HostCan { ping: Pings::Sent, ask_again: true, ..HostCan::default() },
    );
    exchange.decide("POST", "/v1/messages", &headers(&[("x-api-key", "k")]));
    exchange.request(body.as_bytes(), NOW).unwrap();
    let first = exchange.poll_timeout().unwrap() - NOW;
    exchange.handle_call_head(400, &[], NOW + 1000);
    exchange.piece(MISTRAL.as_bytes(), NOW + 1000, &mut Vec::new());
    // A refusal is not waited for long.
    assert!(exchange.poll_timeout().unwrap() < NOW + 1000 + first);
    exchange.end(End::Complete, NOW + 2000, &mut Vec::new());
    exchange.poll_call(NOW + 2000).unwrap();
    assert_eq!(exchange.poll_timeout(), Some(NOW + 2000 + first));
}

#[test]
fn images_of_results_survive_the_second_request() {
    let image = json!({"type": "image", "source":
        {"type": "base64", "media_type": "image/png", "data": "AA"}});
    let messages = [
        user("Do it"),
        call("toolu_1", "look", json!({})),
        answered(result("toolu_1", json!([{"type": "text", "text": "see"}, image]))),
    ];
    let body = request(&messages, &[tool("look", &[])]);
    let refusal = (400, serde_json::from_str(MISTRAL).unwrap());
    let turn = ask(&config(json!({})), &body, &picky(refusal, ""), true);
    assert_eq!((turn.head.status, turn.asked), (200, 2));
    let sent = turn.sent["messages"].to_string();
    assert!(sent.contains("[Tool call look {} gave: see]") && sent.contains("image_url"), "{sent}");
}

/// An agent looked at a screenshot.
fn screenshot() -> [Value; 3] {
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}});
    [
        user("Look at it"),
        call("toolu_alpha1", "look", json!({"q": "x"})),
        answered(json!({"type": "tool_result", "tool_use_id": "toolu_alpha1", "content": [image]})),
    ]
}

/// A turn whose image an upstream refuses, and that a model without eyes then answers.
fn seen(refusal: (u16, &str), retries: bool) -> Turn {
    let upstream = |body: &Value| {
        let (status, message) = refusal;
        if body.to_string().contains("image_url") {
            (status, json!({"error": {"message": message}}))
        } else {
            (200, says("fine"))
        }
    };
    ask(&config(json!({})), &request(&screenshot(), &[tool("look", &[])]), &upstream, retries)
}

#[test]
fn a_model_without_eyes_is_asked_once_more_without_images() {
    for refusal in [
        (400, "this model does not support image input"),
        (400, "messages[2]: unknown variant `image_url`, expected `text`"),
        (500, "image input is not supported - hint: you may need to provide the mmproj"),
        (404, "No endpoints found that support image input"),
    ] {
        let turn = seen(refusal, true);
        assert_eq!((turn.head.status, turn.asked), (200, 2), "{refusal:?}");
        let warnings = turn.header("x-creole-warnings");
        assert!(warnings.contains("images_refused") && warnings.contains("image"), "{warnings}");
        assert!(!turn.sent.to_string().contains("iVBOR"), "{}", turn.sent);
        assert_eq!(turn.header("x-creole-guard"), "");
    }
}

#[test]
fn a_refusal_inside_an_answer_is_tried_again_like_any_other() {
    // OpenRouter has given its status before it asks the server behind it.
    let images = r#"{"error":{"message":"No endpoints found that support image input","code":404},"user_id":"u"}"#;
    let unknown = r#"{"error":{"message":"this model does not support image input"}}"#;
    for body in [images, unknown] {
        for stream in [false, true] {
            let (sent, head) = refused_inside(body, stream, true);
            assert!(!sent.unwrap().to_string().contains("iVBOR"), "{body}");
            assert_eq!(head, None);
            let (sent, head) = refused_inside(body, stream, false);
            let status = if body == images { 400 } else { 502 };
            assert_eq!((sent, head.map(|head| head.status)), (None, Some(status)), "{body}");
        }
    }
    // In the words of a pairing error a host that cannot ask again sends the client to do so.
    let pairing = format!(r#"{{"error":{MISTRAL}}}"#);
    for stream in [false, true] {
        assert!(refused_inside(&pairing, stream, true).0.is_some());
        let (_, head) = refused_inside(&pairing, stream, false);
        assert_eq!(head.map(|head| head.status), Some(529));
    }
    // Any other error, and an answer that speaks of one.
    let complains = r#"{"type":"message","role":"assistant","content":[{"type":"text","text":"fine"}],"stop_reason":"end_turn","detail":"image input is not supported"}"#;
    for body in [
        complains.to_owned(),
        r#"{"error":{"message":"no"}}"#.to_owned(),
        says("image input is not supported").to_string(),
    ] {
        assert_eq!(refused_inside(&body, false, true).0, None, "{body}");
    }
}

#[test]
fn a_refusal_inside_an_answer_is_tried_again_however_it_comes() {
    let error = r#"{"error":{"message":"No endpoints found that support image input","code":404}}"#;
    let of_choice = format!(
        r#"{{"id":"g","choices":[{{"index":0,"message":{{"role":"assistant","content":""}},"finish_reason":"error",{}]}}"#,
        &error[1..]
    );
    for (body, stream) in [
        (format!("[{error}]"), false),
        (of_choice, false),
        (error.to_owned(), true),
        // The blank line, or the line's end too, is missing.
        (format!("data: {error}\n"), true),
        (format!("data: {error}"), true),
    ] {
        for end in [End::Complete, End::Aborted] {
            let (sent, head) = refused_by(&body, stream, true, end);
            assert!(sent.is_some() && head.is_none(), "{body} {end:?}: {head:?}");
            let (_, head) = refused_by(&body, stream, false, end);
            assert_eq!(head.map(|head| head.status), Some(400), "{body} {end:?}");
        }
    }
}

/// The second request, or the client's head, where this comes with status 200.
fn refused_inside(body: &str, stream: bool, retries: bool) -> (Option<Value>, Option<Head>) {
    if stream {
        refused_by(&format!(": hold\n\ndata: {body}\n\n"), stream, retries, End::Complete)
    } else {
        refused_by(body, stream, retries, End::Complete)
    }
}

/// A turn that an upstream refuses with `body`, which comes byte by byte.
fn refused_by(body: &str, stream: bool, retries: bool, end: End) -> (Option<Value>, Option<Head>) {
    let mut exchange = Exchange::new(
        config(json!({})),
        SEED,
        HostCan { ping: Pings::Sent, ask_again: retries, ..HostCan::default() },
    );
    exchange.decide("POST", "/v1/messages", &headers(&[("x-api-key", "k")]));
    let mut request = request(&screenshot(), &[tool("look", &[])]);
    request["stream"] = json!(stream);
    let request = request.to_string();
    exchange.request(request.as_bytes(), NOW).unwrap();
    exchange.handle_call_head(200, &[], NOW);
    assert_eq!(exchange.held_bytes() > 0, retries);
    let mut out = Vec::new();
    for piece in body.as_bytes().chunks(1) {
        let head = exchange.piece(piece, NOW, &mut out);
        if head.is_some() {
            return (None, head);
        }
    }
    if !exchange.is_call_due() {
        let head = exchange.end(end, NOW, &mut out);
        if head.is_some() {
            return (None, head);
        }
    }
    assert!(exchange.is_call_due() && retries && out.is_empty());
    let again = exchange.poll_call(NOW).unwrap();
    exchange.handle_call_head(200, &[], NOW);
    exchange.piece(says("fine").to_string().as_bytes(), NOW, &mut out);
    assert!(!exchange.is_call_due());
    let head = exchange.end(End::Complete, NOW, &mut out).unwrap();
    assert_eq!(head.status, 200);
    (Some(serde_json::from_slice(&again.body).unwrap()), None)
}

#[test]
fn an_answer_that_has_begun_is_not_asked_for_again_however_it_is_cut() {
    let hello = json!({"choices": [{"index": 0, "delta": {"content": "Hello"}}]});
    let error = r#"{"error":{"message":"No endpoints found that support image input","code":404}}"#;
    let body = format!("data: {hello}\n\ndata: {error}\n\n");
    let mut request = request(&screenshot(), &[tool("look", &[])]);
    request["stream"] = json!(true);
    for cut in [1, 40, body.len()] {
        let mut exchange = Exchange::new(
            config(json!({})),
            SEED,
            HostCan { ping: Pings::Sent, ask_again: true, ..HostCan::default() },
        );
        exchange.decide("POST", "/v1/messages", &headers(&[("x-api-key", "k")]));
        exchange.request(request.to_string().as_bytes(), NOW).unwrap();
        exchange.handle_call_head(200, &[], NOW);
        let (mut out, mut status) = (Vec::new(), None);
        for piece in body.as_bytes().chunks(cut) {
            let head = exchange.piece(piece, NOW, &mut out);
            status = head.map(|head| head.status).or(status);
        }
        assert!(!exchange.is_call_due() && exchange.is_ended());
        let text = String::from_utf8(out).unwrap();
        assert_eq!(status, Some(200), "{text}");
        assert!(text.contains("Hello") && text.contains("event: error"), "{text}");
    }
}

/// A server that cannot read one image is asked for an answer to these messages.
fn spoilt(messages: &[Value], refusal: &'static str, retries: bool) -> Turn {
    let upstream = |body: &Value| match body.to_string().contains("image_url") {
        true => (400, json!({"error": {"message": refusal}})),
        false => (200, says("fine")),
    };
    ask(&config(json!({})), &request(messages, &[tool("look", &[])]), &upstream, retries)
}

/// Returns a message in which a person shows words and an image.
fn shown(text: &str) -> Value {
    let source = json!({"type": "base64", "media_type": "image/gif", "data": "R0lGODlh"});
    user(json!([{"type": "text", "text": text}, {"type": "image", "source": source}]))
}

#[test]
fn an_image_that_stays_in_the_conversation_does_not_end_it() {
    let mut told = screenshot().to_vec();
    told.extend([json!({"role": "assistant", "content": "Hm"}), user("And?")]);
    let beside = json!({"type": "text", "text": "[Image: source: a.gif]"});
    let mut moved = screenshot().to_vec();
    let image = moved[2]["content"][0]["content"][0].take();
    moved[2]["content"] = json!([result("toolu_alpha1", "a.gif"), image, beside]);
    for (messages, refusal) in [
        (screenshot().to_vec(), "invalid image input"),
        (screenshot().to_vec(), "Failed to load image or audio file"),
        (told, "Unsupported MIME type: image/gif"),
        (moved, "failed to decode image"),
        (vec![shown("Look"), user("And now?")], "Could not process image"),
    ] {
        let turn = spoilt(&messages, refusal, true);
        assert_eq!((turn.head.status, turn.asked), (200, 2), "{refusal}");
        let warnings = turn.header("x-creole-warnings");
        assert!(warnings.contains("dropped:image,images_refused"), "{warnings}");
        assert!(turn.sent.to_string().contains("[image omitted"), "{}", turn.sent);
        assert_eq!(spoilt(&messages, refusal, false).head.status, 400);
    }
}

#[test]
fn what_is_said_of_an_image_that_was_just_given_is_passed_on() {
    let mut answered = screenshot().to_vec();
    answered.extend([json!({"role": "assistant", "content": "Hm"}), shown("And this?")]);
    for messages in [vec![shown("Look")], answered] {
        let turn = spoilt(&messages, "Unsupported image format: image/gif", true);
        assert_eq!((turn.head.status, turn.asked), (400, 1));
    }
    let turn = spoilt(&screenshot(), "This model does not support tools", true);
    assert_eq!((turn.head.status, turn.asked), (400, 1));
}

#[test]
fn a_host_that_cannot_ask_again_passes_the_refusal_of_images_on() {
    let turn = seen((400, "this model does not support image input"), false);
    assert_eq!((turn.head.status, turn.asked), (400, 1));
}

/// The second turn with a server that gives `field`, and takes it back from nobody.
fn thought(field: &'static str, refusal: &'static str, settings: &Value, retries: bool) -> Turn {
    let config = drive::config(&settings.to_string());
    let tools = [tool("look", &[])];
    let mut answer = calls("look", &json!({"q": "x"}));
    answer["choices"][0]["message"][field] = json!("hm");
    let first =
        ask(&config, &request(&[user("Look")], &tools), &|_| (200, answer.clone()), retries);
    let id = first.body["content"].as_array().unwrap().last().unwrap()["id"].as_str().unwrap();
    let messages = [
        user("Look"),
        json!({"role": "assistant", "content": first.body["content"]}),
        answered(result(id, "a.txt")),
    ];
    let upstream = |body: &Value| match body.to_string().contains(field) {
        true => (400, json!({"error": {"message": refusal}})),
        false => (200, says("fine")),
    };
    ask(&config, &request(&messages, &tools), &upstream, retries)
}

fn settings(profile: Value, strict: bool) -> Value {
    json!({"strict": strict, "upstreams": {"u": {"url": "http://u", "profile_overrides": profile}}})
}

#[test]
fn a_server_that_refuses_its_own_reasoning_is_asked_once_more_without_it() {
    for (field, refusal) in [
        ("reasoning_content", "messages.1.reasoning_content: Extra inputs are not permitted"),
        ("reasoning", "'messages.1' : property 'reasoning' is unsupported"),
    ] {
        let turn = thought(field, refusal, &settings(json!({}), false), true);
        assert_eq!((turn.head.status, turn.asked), (200, 2), "{field}: {}", turn.body);
        let warnings = turn.header("x-creole-warnings");
        assert!(warnings.contains("reasoning_refused"), "{warnings}");
        assert!(warnings.contains("dropped:reasoning"), "{warnings}");
        // All else stays.
        assert_eq!(turn.tool_texts(), ["a.txt"]);
        assert_eq!(turn.header("x-creole-guard"), "");
    }
    let required = settings(json!({"reasoning_history": "required"}), false);
    let turn = thought(
        "reasoning_content",
        "property 'reasoning_content' is unsupported",
        &required,
        true,
    );
    assert_eq!((turn.head.status, turn.asked), (200, 2));
}

#[test]
fn a_refusal_of_reasoning_is_passed_on_where_nothing_can_be_left_out() {
    let refusal = "messages.1.reasoning_content: Extra inputs are not permitted";
    let asked = |refusal, settings: &Value, retries| {
        let turn = thought("reasoning_content", refusal, settings, retries);
        (turn.head.status, turn.asked)
    };
    let plain = settings(json!({}), false);
    assert_eq!(asked(refusal, &plain, false), (400, 1));
    assert_eq!(asked(refusal, &settings(json!({}), true), true), (400, 1));
    let lacks = "The `reasoning_content` in the thinking mode must be passed back to the API.";
    assert_eq!(asked(lacks, &plain, true), (400, 1));
    // None was sent: it cannot be meant.
    let body = request(&[user("q")], &[]);
    let refuses = |_: &Value| (400, json!({"error": {"message": refusal}}));
    let turn = ask(&drive::config(&plain.to_string()), &body, &refuses, true);
    assert_eq!((turn.head.status, turn.asked), (400, 1));
}

#[test]
fn a_server_that_knows_no_stream_options_is_asked_once_more_without_them() {
    let plain = config(json!({}));
    let native =
        drive::config(r#"{"upstreams": {"u": {"url": "http://u", "protocol": "anthropic"}}}"#);
    let tried = |config: &Arc<Config>, stream: bool, status: u16, message: &str| {
        let mut exchange = Exchange::new(
            Arc::clone(config),
            SEED,
            HostCan { ping: Pings::Sent, ask_again: true, ..HostCan::default() },
        );
        exchange.decide("POST", "/v1/messages", &headers(&[("x-api-key", "k")]));
        let mut body = request(&[user("q")], &[]);
        body["stream"] = json!(stream);
        let body = body.to_string();
        exchange.request(body.as_bytes(), NOW).unwrap();
        exchange.handle_call_head(status, &[], NOW);
        let refusal = json!({"error": {"message": message}}).to_string();
        exchange.piece(refusal.as_bytes(), NOW, &mut Vec::new());
        exchange.end(End::Complete, NOW, &mut Vec::new());
        let again = exchange.poll_call(NOW)?;
        let warnings = exchange.report().warnings.header();
        Some((serde_json::from_slice::<Value>(&again.body).unwrap(), warnings))
    };
    for (status, message) in [
        (400, "Unsupported parameter: 'stream_options' is not supported with this model."),
        (500, "create() got an unexpected keyword argument 'stream_options'"),
        (
            422,
            "[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are not permitted'}]",
        ),
    ] {
        let (sent, warnings) = tried(&plain, true, status, message).unwrap();
        assert_eq!((&sent["stream"], sent.get("stream_options")), (&json!(true), None));
        assert_eq!(warnings.as_deref(), Some("stream_options_refused"));
        assert!(tried(&plain, false, status, message).is_none());
        assert!(tried(&native, true, status, message).is_none());
    }
    assert!(tried(&plain, true, 400, "temperature is too high").is_none());
    assert!(tried(&plain, true, 500, "stream_options").is_none());
}

/// Claude Code asks for the title of a session. The upstream takes no such format.
fn titled(profile: Value, strict: bool, refusal: (u16, &str), retries: bool) -> Turn {
    let mut body = request(&[user("q")], &[]);
    body["system"] = json!("Name the session.");
    let schema = json!({"type": "object", "properties": {"title": {"type": "string"}}});
    body["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}});
    let upstream = |body: &Value| match body.get("response_format") {
        Some(_) => (refusal.0, json!({"error": {"message": refusal.1}})),
        None => (200, says("{}")),
    };
    ask(&drive::config(&settings(profile, strict).to_string()), &body, &upstream, retries)
}

const NO_FORMAT: (u16, &str) = (400, "This response_format type is unavailable now");

#[test]
fn a_server_that_takes_no_response_format_is_asked_once_more_in_words() {
    for refusal in [
        NO_FORMAT,
        (422, "This model does not support response format `json_schema`"),
        (500, "create() got an unexpected keyword argument 'response_format'"),
        (404, "structured outputs are not supported by any endpoint"),
    ] {
        for profile in [json!({}), json!({"response_format": "json_object"})] {
            let turn = titled(profile, false, refusal, true);
            assert_eq!((turn.head.status, turn.asked), (200, 2), "{refusal:?}");
            let warnings = "dropped:output_config.format,response_format_refused";
            assert_eq!(turn.header("x-creole-warnings"), warnings);
            let system = turn.sent["messages"][0]["content"].as_str().unwrap();
            assert!(system.starts_with("Name the session.\n\n"), "{system}");
            assert!(
                system.ends_with(r#"{"properties":{"title":{"type":"string"}},"type":"object"}"#),
                "{system}"
            );
        }
    }
}

#[test]
fn a_refusal_of_a_response_format_is_passed_on_where_words_will_not_do() {
    let tried = |strict, refusal, retries| {
        let turn = titled(json!({}), strict, refusal, retries);
        (turn.head.status, turn.asked)
    };
    assert_eq!(tried(true, NO_FORMAT, true), (400, 1));
    assert_eq!(tried(false, NO_FORMAT, false), (400, 1));
    let of_schema = "Invalid schema for response_format 'output': 'oneOf' is not permitted.";
    assert_eq!(tried(false, (400, of_schema), true), (400, 1));
    assert_eq!(tried(false, (429, NO_FORMAT.1), true), (429, 1));
    // None was sent: it cannot be meant.
    let refuses = |_: &Value| (400, json!({"error": {"message": NO_FORMAT.1}}));
    let turn = ask(&config(json!({})), &request(&[user("q")], &[]), &refuses, true);
    assert_eq!((turn.head.status, turn.asked), (400, 1));
}
