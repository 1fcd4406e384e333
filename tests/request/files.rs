//! Images and documents, wherever they stand.

use super::*;

#[test]
fn images_of_results_follow_all_results() {
    let history = json!([
        assistant(json!([call("toolu_1"), call("toolu_2")])),
        user(json!([result("toolu_1", [image()]), result("toolu_2", "ok"), text("see?")])),
    ]);
    assert_eq!(
        messages(history.clone()),
        json!([
            calling(&["call_1", "call_2"]),
            tool("call_1", "[image attached below]"),
            tool("call_2", "ok"),
            user(json!([text("Image from tool result call_1:"), image_part(), text("see?")])),
        ])
    );
    let inside = messages_to(json!({"tool_content_parts": "images"}), history.clone());
    assert_eq!(inside[1]["content"], json!([image_part()]));
    assert_eq!(inside[3], user("see?"));
    let blind = messages_to(json!({"image_parts": "none"}), history);
    assert_eq!(blind[1]["content"], "[image omitted: this model does not take images]");
}

#[test]
fn images_that_cannot_be_sent_are_refused_with_their_path() {
    let url = json!({"type": "image", "source": {"type": "url", "url": "https://x/a.png"}});
    let file = json!({"type": "image", "source": {"type": "file", "file_id": "f"}});
    assert_eq!(
        messages(json!([user([url.clone()])])),
        json!([user(json!([{"type": "image_url", "image_url": {"url": "https://x/a.png"}}]))])
    );
    let request = json!({"messages": [user(json!([text("a"), url]))]});
    let ollama = config("ollama", json!({}), json!({}));
    let error = try_with(&ollama, &whole(request)).0.unwrap_err();
    assert!(error.message.starts_with("messages[0].content[1].source: "), "{error}");
    // In a result, and where it was answered, the client sends it again each time.
    let url = || json!({"type": "image", "source": {"type": "url", "url": "https://x/a.png"}});
    let document = json!({"type": "document", "source": {"type": "content", "content": [url()]}});
    let history = json!({"messages": [
        user(json!([text("a"), url(), document])),
        assistant(json!([call("t")])),
        user(json!([result("t", [url()])])),
    ]});
    let omitted = "[image omitted: this model does not take image URLs]";
    let (sent, warnings) = try_with(&ollama, &whole(history.clone()));
    let told = sent.unwrap().0["messages"].take();
    let in_document = text(&format!("<document>\n{omitted}\n</document>"));
    assert_eq!(told[0]["content"], json!([text("a"), text(omitted), in_document]));
    assert_eq!(told[2]["content"], omitted);
    assert_eq!(warnings, "dropped:image");
    let strict = config("ollama", json!({}), json!({"strict": true}));
    let error = try_with(&strict, &whole(history)).0.unwrap_err();
    assert!(error.message.starts_with("messages[0].content[1].source: "), "{error}");
    let shown = json!([
        user("a"),
        assistant(json!([{"type": "document", "source": {"type": "content", "content": [url()]}}])),
        user("b")
    ]);
    let sent = try_with(&ollama, &whole(json!({"messages": shown}))).0.unwrap().0;
    assert_eq!(sent["messages"][1]["content"], format!("<document>\n{omitted}\n</document>"));
    // What is in its address is here.
    let here =
        json!({"type": "image", "source": {"type": "url", "url": "data:image/png;base64,AA"}});
    let request = json!({"messages": [user(json!([here]))]});
    let sent = try_with(&ollama, &whole(request)).0.unwrap().0;
    assert_eq!(sent["messages"][0]["content"][0]["image_url"]["url"], "data:image/png;base64,AA");
    let nested = json!([assistant(json!([call("t")])), user(json!([result("t", [file])]))]);
    assert_eq!(
        refused(json!({"messages": nested})),
        "messages[1].content[0].content[0].source: the source type file is not supported by this gateway"
    );
}

#[test]
fn an_image_of_another_type_does_not_block_the_conversation() {
    // claude-code#58330, hermes-agent#52688: a tool gives an SVG.
    let image = |media_type: &str| json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": "AA"}});
    let omitted = "[image omitted: it is no JPEG, PNG, GIF or WebP]";
    let url = |url: &str| json!({"type": "image", "source": {"type": "url", "url": url}});
    for image in [
        image("image/svg+xml"),
        image("image/bmp"),
        image("application/pdf"),
        image(""),
        url("data:image/svg+xml;base64,AA"),
    ] {
        let history = json!([
            user(json!([image])),
            assistant(json!([call("t")])),
            user(json!([result("t", json!([text("a"), image]))])),
        ]);
        let told = messages(history.clone());
        // The upstream decides of what a user gave, and took it if it was answered.
        assert_eq!(told[0]["content"][0]["type"], "image_url");
        assert_eq!(told[2]["content"], format!("a\n{omitted}"));
        assert_eq!(warned(json!({"messages": history.clone()})), "dropped:image");
        let blind = messages_to(json!({"image_parts": "none"}), history);
        assert_eq!(blind[2]["content"], "a\n[image omitted: this model does not take images]");
    }
    for image in [
        image("image/jpeg"),
        image("image/jpg; charset=binary"),
        image(" IMAGE/PNG"),
        image("image/x-png"),
        image("image/webp"),
        url("https://x/a.svg"),
        url("data:image/gif;base64,AA"),
    ] {
        let history =
            json!([assistant(json!([call("t")])), user(json!([result("t", json!([image]))]))]);
        assert_eq!(messages(history)[1]["content"], "[image attached below]", "{image}");
    }
}

#[test]
fn documents_become_texts_or_files() {
    let document = |source: Value| json!({"type": "document", "source": source, "title": "T\"t", "context": "C"});
    let plain = document(json!({"type": "text", "media_type": "text/plain", "data": "D\nd"}));
    assert_eq!(
        messages(json!([user([plain])])),
        json!([user("<document title=\"T&quot;t\">\nC\nD\nd\n</document>")])
    );
    let mixed =
        document(json!({"type": "content", "content": [text("a"), text("b"), image(), text("c")]}));
    assert_eq!(
        messages(json!([user([mixed])])),
        json!([user(json!([
            text("<document title=\"T&quot;t\">\nC\na\nb"),
            image_part(),
            text("c\n</document>"),
        ]))])
    );
    let scan = document(json!({"type": "content", "content": [image(), image()]}));
    assert_eq!(
        messages(json!([user([scan])])),
        json!([user(json!([
            text("<document title=\"T&quot;t\">\nC\n"),
            image_part(),
            image_part(),
            text("\n</document>"),
        ]))]),
        "no text is empty"
    );
    let pdf = document(json!({"type": "base64", "media_type": "application/pdf", "data": "JVBE"}));
    let request = json!({"messages": [user([pdf])]});
    assert!(
        refused(request.clone())
            .ends_with(".source: as configured, this model does not support PDF input")
    );
    let word = document(json!({"type": "base64", "media_type": "text/plain", "data": "JVBE"}));
    assert_eq!(
        refused(json!({"messages": [user([word])]})),
        "messages[0].content[0].source.media_type: Input should be 'application/pdf'"
    );
    assert_eq!(
        sent_to("openai-chat", json!({}), request.clone())["messages"][0]["content"],
        json!([text("C"), {"type": "file", "file": {"filename": "T\"t", "file_data": "data:application/pdf;base64,JVBE"}}])
    );
    // What the assistant is to go on with is no answer.
    let going_on = json!({"messages": [request["messages"][0], assistant("{")]});
    assert!(refused(going_on).contains("does not support PDF input"));
    // Later, and in a tool's result, the model is told that it does not see it: the client sends it
    // again each time.
    let pdf =
        || document(json!({"type": "base64", "media_type": "application/pdf", "data": "JVBE"}));
    let omitted = "[document omitted: this model does not take PDF documents]";
    let history = json!([
        user([pdf()]),
        assistant(json!([call("t")])),
        user(json!([result("t", json!([text("a"), pdf()]))])),
    ]);
    let told = messages(history.clone());
    assert_eq!(told[0]["content"], omitted);
    assert_eq!(told[2]["content"], format!("a\n{omitted}"));
    let history = json!({"messages": history});
    assert_eq!(warned(history.clone()), "dropped:document");
    assert!(
        refused_strictly(history.clone())
            .ends_with(".source: as configured, this model does not support PDF input")
    );
    let content = sent_to("openai-chat", json!({}), history)["messages"][0]["content"].take();
    assert_eq!(content[1]["type"], "file");
    let shown = json!({"messages": [user("a"), assistant(json!([pdf()])), user("b")]});
    assert_eq!(warned(shown.clone()), "dropped:document");
    assert_eq!(
        sent_to("openai-chat", json!({}), shown)["messages"][1]["content"],
        "[document omitted: an assistant message cannot have a PDF document]"
    );
    let url = document(json!({"type": "url", "url": "https://x"}));
    assert!(
        refused(json!({"messages": [user([url])]})).starts_with("messages[0].content[0].source")
    );
}

/// Servers refuse such an image, and with it each later request.
#[test]
fn an_image_gets_the_type_that_its_first_bytes_say() {
    let image = |media_type: &str, data: &str| json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}});
    let images = [
        ("iVBORw0KGgoAAAANSUhEUg", "image/png"),
        ("/9j/4AAQSkZJRgABAQ", "image/jpeg"),
        ("R0lGODlhAQABAIAAAP", "image/gif"),
        ("UklGRiIAAABXRUJQVlA4", "image/webp"),
    ];
    let told = "image/png image/jpeg image/jpg image/x-png image/gif image/webp image/bmp";
    for (data, is) in images {
        for said in told.split(' ') {
            let same = said == is || (said, is) == ("image/jpg", "image/jpeg");
            let same = same || (said, is) == ("image/x-png", "image/png");
            let url = format!("data:{};base64,{data}", if same { said } else { is });
            let warnings = if same { "" } else { "media_type_corrected" };
            let history = json!([user(json!([image(said, data), text("a")]))]);
            assert_eq!(messages(history.clone())[0]["content"][0]["image_url"]["url"], *url);
            assert_eq!(warned(json!({"messages": history})), warnings, "{said} {is}");
            // Of a tool, where another type would be left out; and in a document.
            let result = json!([call("t")]);
            let source = json!({"type": "content", "content": [image(said, data)]});
            let inside = json!({"type": "document", "source": source});
            for block in [image(said, data), inside] {
                let given = user(json!([super::result("t", json!([block]))]));
                let told = messages(json!([assistant(result.clone()), given]));
                assert!(told.to_string().contains(&url), "{told}");
            }
        }
    }
    let unknown = json!([user(json!([image("image/png", "AAAA"), image("image/png", "")]))]);
    assert_eq!(warned(json!({"messages": unknown})), "");
    // Strict mode leaves it to the upstream to refuse.
    let body = whole(json!({"messages": [user(json!([image("image/png", "/9j/4AAQ")]))]}));
    let strict = config("openai-chat", json!({}), json!({"strict": true}));
    let (sent, warnings) = try_with(&strict, &body);
    let url = &sent.unwrap().0["messages"][0]["content"][0]["image_url"]["url"];
    assert_eq!((url, &*warnings), (&json!("data:image/png;base64,/9j/4AAQ"), ""));
}

/// PHP escapes slashes, .NET quotes.
#[test]
fn escapes_in_titles_and_addresses_are_read() {
    let image = r#"{"type":"image","source":{"type":"url","url":"data:image\/png;base64,AA"}}"#;
    let body = whole(json!({"messages": [
        user([json!({"type": "document", "title": "a TITLE", "source": {"type": "text", "media_type": "text/plain", "data": "D"}})]),
        assistant(json!([call("t")])),
        user(json!([result("t", json!([text("IMAGE")]))])),
    ]}));
    let body = body.replace("a TITLE", r"a \u0022title\u0022");
    let body = body.replace(r#"{"text":"IMAGE","type":"text"}"#, image);
    let (told, warned) = try_with(&config("openai-chat", json!({}), json!({})), &body);
    let told = &told.unwrap().0["messages"];
    assert_eq!(told[0]["content"], "<document title=\"a &quot;title&quot;\">\nD\n</document>");
    assert_eq!(told[3]["content"][1]["image_url"]["url"], "data:image/png;base64,AA");
    assert_eq!(warned, "");
}
