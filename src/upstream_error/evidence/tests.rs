//! Tests with words that a server repeats from the request.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::json;

use super::echoes::QUOTED_WORDS;
use super::*;
use crate::model::request_context::RequestContext;
use crate::upstream_error::from_upstream;
use crate::upstream_error::wordings::PhraseRole;

/// Words of the server around a quotation, which name no path.
const OWN: [(&str, &str); 9] = [
    ("Invalid value: ", ""),
    ("Unexpected value, got ", ""),
    ("This model does not support the value ", ""),
    ("Value ", " is not supported."),
    ("Error in image processing at ", " of the request"),
    ("The stream option and tool_choice are wrong for ", ""),
    ("A tool result should not have ", ", ignored"),
    ("The model's thinking failed with ", " at the end"),
    ("参数思考错误 ", " 不支持"),
];

/// Signs around a quotation.
const AROUND: [(&str, &str); 6] =
    [("'", "'"), ("\"", "\""), ("`", "`"), ("“", "”"), ("got '", "'"), ("received: \"", "\"")];

/// Returns words: names and complaints of the table's rows, and words without meaning.
fn pool() -> Vec<String> {
    let rows = rows().flat_map(|row| listed(row.names).chain(listed(row.lacks)));
    let of_rows =
        rows.chain(WANTS_TEXT.phrases(PhraseRole::Alone)).flat_map(|entry| entry.split(" & "));
    let others = [
        "the",
        "file",
        "don't",
        "it's",
        "C:\\dir",
        "two\nlines",
        "messages.0.content",
        "\"so\"",
        "–",
        "x,",
    ];
    of_rows.chain(others).map(str::to_owned).collect()
}

/// Returns the changes for an error with this message, in the order in which they are tried.
fn found(status: u16, message: &str, sent: Option<&str>) -> Vec<Refused> {
    let body = json!({"error": {"message": message}}).to_string();
    let error = from_upstream(status, body.as_bytes(), &RequestContext::default());
    let found = changes(error.rejection().unwrap(), sent, false);
    found.into_iter().map(|(_, change)| change).collect()
}

/// Returns requests with `text` in each place that the user controls.
fn request(text: &str) -> [String; 4] {
    let with = |user: &str, name: &str, values: &[&str], id: &str| {
        json!({
            "model": "m",
            "messages": [
                {"role": "user", "content": user},
                {"role": "assistant", "tool_calls": [{"id": id, "function": {"name": name}}]},
            ],
            "tools": [{"function": {"name": name, "parameters": {"enum": values}}}],
        })
        .to_string()
    };
    [
        with(text, "read", &["a"], "call_1"),
        with("Hello", text, &["a"], "call_1"),
        with("Hello", "read", &["a", text, "b"], "call_1"),
        with("Hello", "read", &["a"], text),
    ]
}

fn repeats_nothing(own: (&str, &str), quotes: (&str, &str), text: &str, sent: Option<&str>) {
    let ((before, behind), (open, close)) = (own, quotes);
    // Quotation marks inside of the text would close the quotation.
    if close == "\"" && text.contains(close) {
        return;
    }
    // `got list` is the server's own word for the kind of a value.
    let is_kind = text.starts_with("array") || text.starts_with("list");
    if is_kind
        && format!("{before}{open}")
            .trim_end_matches(|mark| QUOTES.contains(mark))
            .ends_with("got ")
    {
        return;
    }
    for status in [400, 422, 500] {
        let bare = found(status, &format!("{before}{open}{close}{behind}"), sent);
        let message = format!("{before}{open}{text}{close}{behind}");
        let mut added = found(status, &message, sent);
        added.retain(|change| !bare.contains(change));
        assert!(added.is_empty(), "{message:?} adds {added:?}, with {sent:?}");
    }
}

#[test]
fn a_quoted_value_of_two_words_is_no_complaint_of_the_server() {
    let own = ("The stream option and tool_choice are wrong for ", "");
    for sent in request("sequence, expected") {
        repeats_nothing(own, ("'", "'"), "sequence, expected", Some(&sent));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_quotation_of_the_request_is_no_evidence(
        words in prop::collection::vec(select(pool()), 1..12),
        from in any::<Index>(),
        to in any::<Index>(),
        own in select(&OWN[..]),
        quotes in select(&AROUND[..]),
        place in 0_usize..4,
    ) {
        let text = words.join(" ");
        let sent = &request(&text)[place];
        repeats_nothing(own, quotes, &text, Some(sent));
        let (from, to) = (from.index(words.len()), to.index(words.len()));
        let part = words.get(from..=to).unwrap_or(&words);
        let is_long = part.len() > QUOTED_WORDS;
        if is_long {
            repeats_nothing(own, quotes, &part.join(" "), Some(sent));
            // The server repeats words without quotation marks, or the request is gone.
            repeats_nothing(own, ("", ""), &part.join(" "), Some(sent));
            repeats_nothing(own, quotes, &part.join(" ").replace(['\'', '"'], ""), None);
        }
    }

    #[test]
    fn an_error_out_of_the_request_is_no_evidence(
        words in prop::collection::vec(select(pool()), 1..12),
        place in 0_usize..4,
    ) {
        let text = words.join(" ");
        repeats_nothing(("", ""), ("", ""), &text, Some(&request(&text)[place]));
    }
}

#[test]
fn names_in_the_servers_own_words_are_evidence() {
    let request = &request("Is 'image' a word? The model does not support images")[0];
    for sent in [None, Some(request.as_str())] {
        for (message, change) in [
            ("This model's images are not supported", Refused::Images),
            ("'tool_choice' is not supported here", Refused::ForcedTool),
            ("图片不支持", Refused::Images),
        ] {
            assert_eq!(found(400, message, sent), [change], "{message}");
        }
    }
}
