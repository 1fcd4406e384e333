//! Upstreams that fall silent: pings, and how long each kind of answer is waited for.

use super::*;

#[test]
fn silence_brings_pings_and_at_last_an_error() {
    let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
    let mut body = Vec::new();
    exchange.handle_call_head(200, &[], NOW);
    let piece = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n";
    let head = exchange.piece(piece, NOW, &mut body);
    assert_eq!(head.unwrap().status, 200);
    let mut now = NOW;
    let mut pings = 0;
    while !exchange.is_ended() {
        let due = exchange.poll_timeout().unwrap();
        assert!(due > now, "time stands still at {now}");
        now = due;
        let before = body.len();
        assert_eq!(exchange.timeout(now, &mut body), None);
        pings += usize::from(body[before..].starts_with(b"event: ping"));
        assert!(now < NOW + 300_000, "no end of silence");
    }
    assert!(pings >= 10, "{pings} pings");
    let events = grammar::check_stream(&body, Rules::default()).unwrap();
    let said =
        json!({"type": "timeout_error", "message": "Stream timed out: Upstream stopped sending."});
    assert_eq!(events.last().unwrap().data["error"], said);
    assert_eq!(exchange.report().warnings.guards(), ["stall"]);
    assert_eq!(exchange.report().cause(), "stall");
}

#[test]
fn silence_behind_a_role_begins_the_message() {
    let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
    let mut body = Vec::new();
    exchange.handle_call_head(200, &[], NOW);
    let piece = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n\n";
    assert_eq!(exchange.piece(piece, NOW, &mut body), None);
    let due = exchange.poll_timeout().unwrap();
    assert_eq!(due, NOW + 15_000);
    assert_eq!(exchange.timeout(due, &mut body).unwrap().status, 200);
    exchange.piece(&stopped("Hi"), due, &mut body);
    exchange.end(End::Complete, due, &mut body);
    let events = grammar::check_stream(&body, Rules::default()).unwrap();
    assert_eq!(events.last().unwrap().name, "message_stop");
    // A host that cannot begin it in silence does so at once.
    let (mut exchange, _) = started(&drive::config("{}"), Pings::AfterHead, &ask(true));
    let mut body = Vec::new();
    exchange.handle_call_head(200, &[], NOW);
    assert_eq!(exchange.piece(piece, NOW, &mut body).unwrap().status, 200);
    assert_eq!(exchange.timeout(due, &mut body), None);
    assert!(body.ends_with(b"event: ping\ndata: {\"type\":\"ping\"}\n\n"));
}

/// Returns the second in which an answer is given up whose upstream sends this piece each second.
fn given_up_after(piece: impl Fn(u64) -> Value) -> Option<u64> {
    let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
    let mut body = Vec::new();
    exchange.handle_call_head(200, &[], NOW);
    for second in 0..900 {
        let now = NOW + second * 1000;
        let chunk = json!({"choices": [{"index": 0, "delta": piece(second)}]});
        let chunk = format!("data: {chunk}\n\n");
        exchange.piece(chunk.as_bytes(), now, &mut body);
        exchange.timeout(now, &mut body);
        if exchange.is_ended() {
            let events = grammar::check_stream(&body, Rules::default()).unwrap();
            let why = "Stream timed out: Upstream sends signs of life, but no content.";
            let said = json!({"type": "timeout_error", "message": why});
            assert_eq!(events.last().unwrap().data["error"], said);
            return Some(second);
        }
    }
    None
}

#[test]
fn white_space_without_end_is_no_content() {
    let input = |second: u64| match second {
        0 => json!({"tool_calls": [{"index": 0, "id": "call_a",
            "function": {"name": "w", "arguments": "{\"command\":\"ls\""}}]}),
        _ => json!({"tool_calls": [{"index": 0, "function": {"arguments": "\n  "}}]}),
    };
    assert_eq!(given_up_after(input), Some(280));
    assert_eq!(given_up_after(|_| json!({"content": "\n"})), Some(280));
    assert_eq!(given_up_after(|_| json!({"reasoning": " \t"})), Some(280));
    let after_text = |second| json!({"content": if second == 0 { "Hi" } else { "\u{a0}\n" }});
    assert_eq!(given_up_after(after_text), Some(280));
    // A word now and then is enough.
    for key in ["content", "reasoning"] {
        let slow = |second| json!({key: if second % 270 == 0 { "x" } else { "\n" }});
        assert_eq!(given_up_after(slow), None);
    }
}

#[test]
fn a_complete_answer_whose_connection_stays_open_ends_after_ten_seconds() {
    let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
    let mut body = Vec::new();
    exchange.handle_call_head(200, &[], NOW);
    exchange.piece(&stopped("Hi"), NOW, &mut body);
    // Without the counts it may be one that calls a tool after that word.
    assert!(exchange.poll_timeout().unwrap() > NOW + 10_000);
    let counts =
        b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\n";
    exchange.piece(counts, NOW, &mut body);
    let due = exchange.poll_timeout().unwrap();
    assert!(due <= NOW + 10_000);
    // Signs of life are no reason to wait.
    exchange.piece(b": still here\n\n", NOW + 9_000, &mut body);
    while !exchange.is_ended() {
        let now = exchange.poll_timeout().unwrap();
        assert!(now <= NOW + 10_000, "{}", now - NOW);
        exchange.timeout(now, &mut body);
    }
    let events = grammar::check_stream(&body, Rules::default()).unwrap();
    assert_eq!(events.last().unwrap().name, "message_stop");
    assert_eq!(exchange.report().outcome, creole::observe::report::Outcome::Answered);
    assert!(exchange.report().warnings.guards().is_empty());
}

#[test]
fn counts_beside_the_finish_reason_are_the_end_where_they_are_the_first() {
    let counts = r#"{"prompt_tokens":1,"completion_tokens":1}"#;
    let chunk = |text: &str, finish: &str, usage: &str| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":{finish}}}],\"usage\":{usage}}}\n\n"
        )
    };
    let (stop, none) = ("\"stop\"", "null");
    for (chunks, waits) in [
        (vec![chunk("Hi", none, none), chunk("", stop, counts)], 10_000),
        (vec![chunk("H", none, none), chunk("i", stop, counts)], 10_000),
        // A server that counts with each chunk.
        (vec![chunk("Hi", none, counts), chunk("", stop, counts)], 60_000),
        (vec![chunk("Hi", stop, counts)], 60_000),
        (vec![chunk("H", stop, none), chunk("i", stop, counts)], 120_000),
        (vec![chunk("Hi", none, none), chunk("", stop, none)], 60_000),
        (vec![chunk("", stop, counts)], 120_000),
    ] {
        let bytes = chunks.concat();
        for size in [1, 7, bytes.len()] {
            let (mut exchange, _) = started(&drive::config("{}"), Pings::No, &ask(true));
            let mut body = Vec::new();
            exchange.handle_call_head(200, &[], NOW);
            for piece in bytes.as_bytes().chunks(size) {
                exchange.piece(piece, NOW, &mut body);
            }
            assert_eq!(exchange.poll_timeout(), Some(NOW + waits), "{bytes}");
        }
    }
}

#[test]
fn a_word_of_the_end_ends_no_answer_that_goes_on_later() {
    let call = json!({"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "call_a",
        "function": {"name": "w", "arguments": "{}"}}]}, "finish_reason": "tool_calls"});
    let call = format!("data: {}\n\ndata: [DONE]\n\n", json!({"choices": [call]})).into_bytes();
    let reasoning = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning\":\"hm\"},\"finish_reason\":\"stop\"}]}\n\n";
    // Before the first word, after reasoning, after a text, and after each word of a text.
    let counts =
        b"data: {\"choices\":[{\"delta\":{\"content\":\"\"}}],\"usage\":{\"prompt_tokens\":1}}\n\n";
    let starts = [
        [counts.to_vec(), stopped("")].concat(),
        [stopped("I "), counts.to_vec(), stopped("")].concat(),
        stopped(""),
        reasoning.to_vec(),
        stopped("I will look."),
        [stopped("I "), stopped("look")].concat(),
    ];
    for start in starts {
        let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
        let mut body = Vec::new();
        exchange.handle_call_head(200, &[], NOW);
        exchange.piece(&start, NOW, &mut body);
        let mut now = NOW;
        while now < NOW + 50_000 {
            exchange.timeout(now, &mut body);
            now = exchange.poll_timeout().unwrap().min(NOW + 50_000);
        }
        exchange.piece(&call, now, &mut body);
        let events = grammar::check_stream(&body, Rules::default()).unwrap();
        let calls = events.iter().filter(|event| event.data["content_block"]["type"] == "tool_use");
        assert_eq!(calls.count(), 1, "{}", String::from_utf8_lossy(&start));
        assert_eq!(events.last().unwrap().name, "message_stop");
    }
}

#[test]
fn an_answer_that_could_end_there_is_no_stall_either() {
    let reasoning = json!({"index": 0, "delta": {"reasoning": "hm"}, "finish_reason": "length"});
    let reasoning = format!("data: {}\n\n", json!({"choices": [reasoning]})).into_bytes();
    let late =
        [stopped("Hi"), b"data: {\"choices\":[{\"delta\":{\"content\":\" \"}}]}\n\n".to_vec()];
    for (upstream, reason) in
        [(reasoning, "max_tokens"), (stopped(""), "end_turn"), (late.concat(), "end_turn")]
    {
        let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
        let mut body = Vec::new();
        exchange.handle_call_head(200, &[], NOW);
        exchange.piece(&upstream, NOW, &mut body);
        while !exchange.is_ended() {
            let now = exchange.poll_timeout().unwrap();
            exchange.timeout(now, &mut body);
        }
        let events = grammar::check_stream(&body, Rules::default()).unwrap();
        let delta = &events[events.len() - 2].data["delta"];
        assert_eq!(delta["stop_reason"], reason, "{}", String::from_utf8_lossy(&upstream));
    }
}

#[test]
fn signs_of_life_before_the_first_word_keep_the_client_alive_too() {
    let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
    let mut body = Vec::new();
    exchange.handle_call_head(200, &[], NOW);
    exchange.piece(b": in the queue\n\n", NOW, &mut body);
    let due = exchange.poll_timeout().unwrap();
    assert_eq!(due, NOW + 15_000);
    let head = exchange.timeout(due, &mut body).unwrap();
    let begun = String::from_utf8(body.clone()).unwrap();
    assert_eq!(head.status, 200);
    assert!(begun.contains("message_start") && begun.contains("event: ping"), "{begun}");
    assert_eq!(exchange.piece(&stopped("Hi"), due, &mut body), None);
    exchange.end(End::Complete, due, &mut body);
    let events = grammar::check_stream(&body, Rules::default()).unwrap();
    assert_eq!(events.last().unwrap().name, "message_stop");
    // What follows may be a whole answer, which is collected.
    let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
    exchange.handle_call_head(200, &[], NOW);
    exchange.piece(b" \n", NOW, &mut Vec::new());
    assert!(exchange.timeout(due, &mut Vec::new()).is_some());
    exchange.piece(b"{\"choices\":", due, &mut Vec::new());
    let mut ping = Vec::new();
    assert_eq!(exchange.poll_timeout(), Some(due + 15_000));
    exchange.timeout(due + 15_000, &mut ping);
    assert!(ping.starts_with(b"event: ping"), "{}", String::from_utf8_lossy(&ping));
    // A host that writes only when the upstream does begins with the next sign of life.
    for pings in [Pings::AfterHead, Pings::No] {
        let (mut exchange, _) = started(&drive::config("{}"), pings, &ask(true));
        exchange.handle_call_head(200, &[], NOW);
        let mut body = Vec::new();
        exchange.piece(b": in the queue\n\n", NOW, &mut body);
        assert!(exchange.poll_timeout().unwrap() > due);
        assert_eq!(exchange.timeout(due, &mut body), None);
        assert_eq!(exchange.piece(b": 1\n\n", due + 14_999, &mut body), None);
        let head = exchange.piece(b": 2\n\n", due + 15_000, &mut body).unwrap();
        assert_eq!(head.status, 200);
        assert!(body.starts_with(b"event: message_start"));
        let pinged = exchange.poll_timeout() == Some(due + 30_000);
        assert_eq!(pinged, pings == Pings::AfterHead);
    }
    // One that wants one message gets no event, and a whole answer is not promised before it is
    // known.
    for (stream, piece) in [(false, &b": in the queue\n\n"[..]), (true, b"{\"choices\":")] {
        let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(stream));
        exchange.handle_call_head(200, &[], NOW);
        let mut body = Vec::new();
        exchange.piece(piece, NOW, &mut body);
        assert_eq!(exchange.timeout(NOW + 15_000, &mut body), None);
        assert_eq!(body, b"");
    }
}

#[test]
fn an_upstream_that_never_answers_is_a_504() {
    let (mut exchange, _) = started(&drive::config("{}"), Pings::No, &ask(false));
    let mut body = Vec::new();
    let due = exchange.poll_timeout().unwrap();
    let head = exchange.timeout(due, &mut body).unwrap();
    let said = json!({"type": "timeout_error", "message": "Upstream did not answer in time."});
    assert_eq!((head.status, error_of(&body)), (504, said));
}

/// Returns the answer and its time, if the upstream falls silent after `pieces` (two seconds each).
fn silent_after(status: u16, pieces: &[&str], config: &str) -> (Head, String, u64) {
    let (mut exchange, _) = started(&drive::config(config), Pings::Sent, &ask(false));
    let (mut out, mut now) = (Vec::new(), NOW);
    exchange.handle_call_head(status, &headers(&[("retry-after", "7")]), now);
    for piece in pieces {
        now += 2000;
        assert_eq!(exchange.piece(piece.as_bytes(), now, &mut out), None);
    }
    loop {
        let due = exchange.poll_timeout().unwrap();
        assert!(due >= now && due < NOW + 1_000_000, "time stands still at {now}");
        now = due;
        if let Some(head) = exchange.timeout(now, &mut out) {
            return (head, String::from_utf8(out).unwrap(), now - NOW);
        }
    }
}

#[test]
fn a_whole_answer_whose_connection_stays_open_ends_after_ten_seconds() {
    let start = r#"{"choices":[{"message":{"content":"Hi {}"#;
    let end = r#""},"finish_reason":"stop"}]}"#;
    let (head, body, after) = silent_after(200, &[start, end, "\n"], "{}");
    assert_eq!((head.status, after), (200, 16_000), "{body}");
    assert!(body.contains("Hi {}") && body.contains("end_turn"), "{body}");
    // What ends with a bracket need not be all.
    let short = r#"{"stall_timeout_ms": 30000}"#;
    for cut in [start, r#"{"choices":[{"delta":{"content":"Hi"}}]}"#] {
        let (head, body, after) = silent_after(200, &[cut], short);
        assert_eq!((head.status, after), (504, 32_000), "{body}");
    }
    let (head, body, after) =
        silent_after(200, &[&start[..40], end], r#"{"stall_timeout_ms": 5000}"#);
    assert_eq!((head.status, after), (200, 9000), "{body}");
}

#[test]
fn a_refusal_whose_connection_stays_open_is_told_after_ten_seconds() {
    let slow = r#"{"error":{"message":"slow down"}}"#;
    for (pieces, said, seconds) in [
        (&[slow] as &[&str], "slow down", 10),
        // However much of it still comes.
        (&[&slow[..9], &slow[9..], " ", " "], "slow down", 10),
        (&[], "HTTP 429 from upstream", 10),
        (&[slow], "slow down", 3),
    ] {
        let config = if seconds == 3 { r#"{"no_progress_timeout_ms": 3000}"# } else { "{}" };
        let (head, body, after) = silent_after(429, pieces, config);
        assert_eq!((head.status, after), (429, seconds * 1000), "{body}");
        assert_eq!(header(&head, "retry-after"), Some("7"));
        assert!(body.contains(said), "{body}");
    }
}

#[test]
fn a_refusal_whose_body_does_not_end_is_told_and_not_read_on() {
    let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
    exchange.handle_call_head(500, &[], NOW);
    let (mut out, mut read) = (Vec::new(), 0);
    let mut piece = b"no memory ".repeat(100);
    let head = loop {
        let head = exchange.piece(&piece, NOW, &mut out);
        read += piece.len();
        if let Some(head) = head {
            break head;
        }
        assert!(read < 300_000, "{read} bytes are not enough");
        piece.resize(1000, b' ');
    };
    assert!(exchange.is_ended() && read > 200_000, "{read}");
    assert_eq!(head.status, 500);
    assert!(error_of(&out)["message"].as_str().unwrap().contains("no memory"));
    assert_eq!(exchange.end(End::Aborted, NOW, &mut out), None);
}

#[test]
fn a_count_that_does_not_end_is_estimated() {
    let text = r#"{"response_bytes_max": 2000, "count_tokens": "upstream",
                   "upstreams": {"a": {"profile_overrides": {"tokenizer": "messages"}}}}"#;
    for (piece, millis) in [("[1,2,3,", 1000), ("[1,2,3,4,5,6,7,8,9,", 0)] {
        let sent =
            drive::request(&drive::config(text), "/v1/messages/count_tokens", &[], &ask(false));
        let (mut exchange, _) = sent.unwrap();
        exchange.handle_call_head(200, &[], NOW);
        let (mut out, mut now, mut read) = (Vec::new(), NOW, 0);
        let head = loop {
            now += millis;
            read += piece.len();
            let head = exchange.piece(piece.as_bytes(), now, &mut out);
            if let Some(head) = head.or_else(|| exchange.timeout(now, &mut out)) {
                break head;
            }
            assert!(read < 3000, "{read} bytes are not enough");
        };
        assert_eq!((head.status, now - NOW), (200, millis * 10));
        assert_eq!(header(&head, "x-creole-warnings"), Some("count_estimated"));
        assert!(out.starts_with(b"{\"input_tokens\":"));
    }
}

#[test]
fn a_stream_whose_prompt_is_read_for_minutes_is_waited_for_with_pings() {
    // With its head at once, or with the first word.
    for head_after in [1, 500] {
        let (mut exchange, body) = kept_waiting(true, "{}", head_after, b": reading\n\n", 580);
        assert!(!exchange.is_ended(), "{}", String::from_utf8_lossy(&body));
        let mut body = Vec::new();
        let chunk = b"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
        exchange.piece(chunk, NOW + 580_000, &mut body);
        // From its first content on, the shorter limit of silence counts.
        exchange.timeout(NOW + 580_000 + 239_000, &mut body);
        assert!(!exchange.is_ended());
        exchange.timeout(NOW + 580_000 + 240_000, &mut body);
        assert!(exchange.is_ended());
    }
    // Where nothing can be written meanwhile, clients would give up first.
    for (ping, wait_ms) in [(Pings::No, 120_000), (Pings::AfterHead, 240_000)] {
        let (exchange, _) = started(&drive::config("{}"), ping, &ask(true));
        assert_eq!(exchange.poll_timeout(), Some(NOW + wait_ms));
    }
}

#[test]
fn a_whole_answer_may_take_as_long_as_clients_wait_for_it() {
    for (settings, stream, wait_ms) in [
        ("{}", false, 590_000),
        ("{}", true, 590_000),
        (r#"{"stall_timeout_ms": 60000}"#, true, 60_000),
        // What an operator chose is what they get.
        (r#"{"stall_timeout_ms": 60000}"#, false, 60_000),
        (r#"{"first_byte_timeout_ms": 70000}"#, false, 70_000),
    ] {
        let (exchange, _) = started(&drive::config(settings), Pings::Sent, &ask(stream));
        assert_eq!(exchange.poll_timeout(), Some(NOW + wait_ms), "{settings}, stream: {stream}");
    }
}

/// An exchange whose upstream sends its head after so many seconds, and then this each ten, until
/// the given one.
fn kept_waiting(
    stream: bool,
    config: &str,
    head_after: u64,
    piece: &[u8],
    until: u64,
) -> (Exchange, Vec<u8>) {
    let (mut exchange, _) = started(&drive::config(config), Pings::Sent, &ask(stream));
    let mut body = Vec::new();
    for second in 0..until {
        let now = NOW + second * 1000;
        if second == head_after {
            exchange.handle_call_head(200, &[], now);
        } else if second > head_after && second % 10 == 0 {
            exchange.piece(piece, now, &mut body);
        }
        exchange.timeout(now, &mut body);
    }
    (exchange, body)
}

#[test]
fn the_time_before_a_late_head_is_no_silence_after_it() {
    for stream in [false, true] {
        let config = r#"{"first_byte_timeout_ms": 590000}"#;
        let (mut exchange, mut body) = kept_waiting(stream, config, 500, b"", 510);
        assert!(!exchange.is_ended() && body.is_empty(), "{}", String::from_utf8_lossy(&body));
        let now = NOW + 510_000;
        let whole = br#"{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}"#;
        exchange.piece(whole, now, &mut body);
        let head = exchange.end(End::Complete, now, &mut body);
        assert_eq!(head.unwrap().status, 200);
    }
    // An error that is told late is that error.
    let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(false));
    exchange.handle_call_head(429, &[], NOW + 400_000);
    let mut body = Vec::new();
    assert_eq!(exchange.timeout(NOW + 401_000, &mut body), None);
    let head = exchange.end(End::Complete, NOW + 401_000, &mut body);
    assert_eq!(head.unwrap().status, 429);
}

#[test]
fn a_whole_answer_that_is_kept_alive_by_line_ends_is_waited_for_as_long_as_its_head() {
    for piece in [b"\n".as_slice(), b" ", b""] {
        let (mut exchange, mut body) = kept_waiting(false, "{}", 1, piece, 580);
        assert!(!exchange.is_ended(), "{}", String::from_utf8_lossy(&body));
        assert_eq!(exchange.poll_timeout(), Some(NOW + 590_000));
        let now = NOW + 580_000;
        let whole = br#"{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}"#;
        exchange.piece(whole, now, &mut body);
        // What it had begun to say is cut off as in any other answer.
        assert_eq!(exchange.poll_timeout(), Some(now + 10_000));
        let head = exchange.end(End::Complete, now, &mut body);
        assert_eq!(head.unwrap().status, 200);

        let (exchange, body) = kept_waiting(false, "{}", 1, piece, 600);
        assert!(exchange.is_ended());
        assert_eq!(error_of(&body)["message"], "Upstream did not answer in time.");
        // What operators choose is not longer than they chose, once both limits are over.
        let chosen = r#"{"stall_timeout_ms": 60000, "no_progress_timeout_ms": 100000}"#;
        assert!(kept_waiting(false, chosen, 1, piece, 102).0.is_ended());
    }
    // So are comments and empty chunks, where the upstream streams all the same.
    for piece in [": keep-alive\n\n", "data: {\"choices\":[]}\n\n"] {
        let (exchange, _) = kept_waiting(false, "{}", 1, piece.as_bytes(), 580);
        assert!(!exchange.is_ended(), "{piece}");
        assert_eq!(exchange.poll_timeout(), Some(NOW + 590_000), "{piece}");
    }
    // In a stream such line ends are no content, and it may take as long until some comes.
    assert!(!kept_waiting(true, "{}", 1, b"\n", 580).0.is_ended());
    assert!(kept_waiting(true, "{}", 1, b"\n", 600).0.is_ended());
}
