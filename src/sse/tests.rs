//! Tests of `sse/mod.rs`.

use super::*;

fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let mut decoder = Decoder::new(1 << 20);
    let mut events = Vec::new();
    let show = |event: SseEvent<'_>| {
        let is_error = event.called == Called::Error;
        if is_error { format!("error:{}", event.data) } else { event.data.into_owned() }
    };
    for mut piece in pieces {
        while let Some(event) = decoder.next(&mut piece).unwrap() {
            events.push(show(event));
        }
    }
    events.extend(decoder.finish().map(show));
    events
}

fn decode_all_ways(body: &[u8]) -> Vec<String> {
    let whole = decode([body]);
    for cut in 0..=body.len() {
        assert_eq!(decode([&body[..cut], &body[cut..]]), whole, "cut at {cut}");
    }
    assert_eq!(decode(body.chunks(1)), whole, "byte by byte");
    whole
}

#[test]
fn the_cuts_between_pieces_do_not_matter() {
    let body = "\u{feff}data: {\"c\":\"é→😀\"}\n\n: ping\n\n:\n\ndata: two\r\ndata: lines\r\n\r\n\
                data:a\rdata: b\r\rid: 1\nevent: error\nretry: 3\ndata:  x\n\ndata:\n\ndata: \n\n\
                event: message\n\ndata\n\ndata: last";
    assert_eq!(
        decode_all_ways(body.as_bytes()),
        ["{\"c\":\"é→😀\"}", "two\nlines", "a\nb", "error: x", "last"]
    );
}

#[test]
fn a_bare_object_between_events_is_an_event() {
    assert_eq!(
        decode_all_ways(b"data: a\n\n{\"error\":\"x\"}\n\ndata: b\n\n"),
        ["a", "{\"error\":\"x\"}", "b"]
    );
}

#[test]
fn a_bare_object_in_several_lines_is_one_event() {
    let error = "{\n\"error\": {\n\"code\": 503,\n\"details\": [\n{\n\"a\": 1\n},\n{}\n]\n}\n}";
    for (error, padding) in
        [(error.to_owned(), ""), (format!("[{error}\n]"), ""), (error.to_owned(), "  ")]
    {
        let indented = error.replace('\n', &format!("\n{padding}"));
        for end in ["", "\n", "\r\n\r\n", "\n: ping\n\ndata: b\n\n"] {
            let body = format!("data: a\n\n{indented}{end}");
            let expected = [Some("a"), Some(&error), end.contains('b').then_some("b")];
            let expected: Vec<&str> = expected.into_iter().flatten().collect();
            assert_eq!(decode_all_ways(body.as_bytes()), expected, "{body}");
        }
    }
    // Lines between the lines of events, which belong to no event.
    for (body, expected) in [
        ("data: {\"a\":1}\nlog line\n\ndata: b\n\n", ["{\"a\":1}", "b"]),
        ("{\"a\":1},\nlog line\n\ndata: b\n\n", ["{\"a\":1},", "b"]),
        ("{\n: ping\nid: 1\n}\ndata: [DONE]\n\n", ["{\n}", "[DONE]"]),
        ("[ERROR] Net\n\ndata: a\n\ndata: b\n\n", ["a", "b"]),
    ] {
        assert_eq!(decode_all_ways(body.as_bytes()), expected, "{body}");
    }
}

/// Returns the names and data of all events, after checking that cuts do not change them.
fn named(body: &[u8]) -> Vec<(String, String)> {
    let run = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let mut decoder = Decoder::new(1 << 20);
        let mut events = Vec::new();
        let show = |event: SseEvent<'_>| {
            let is_error = event.called == Called::Error;
            let name = if is_error { "error" } else { event.called.name().unwrap_or("") };
            (name.to_owned(), event.data.into_owned())
        };
        for mut piece in pieces {
            while let Some(event) = decoder.next(&mut piece).unwrap() {
                events.push(show(event));
            }
        }
        while let Some(event) = decoder.finish() {
            events.push(show(event));
        }
        events
    };
    let whole = run(&mut std::iter::once(body));
    for cut in 0..=body.len() {
        assert_eq!(run(&mut [&body[..cut], &body[cut..]].into_iter()), whole, "cut at {cut}");
    }
    assert_eq!(run(&mut body.chunks(1)), whole);
    whole
}

#[test]
fn an_event_has_the_last_name_before_its_blank_line() {
    for (body, expected) in [
        ("data: {}\nevent: ping\n\ndata: {}\n\n", &[("ping", "{}"), ("", "{}")] as &[_]),
        ("event: ping\ndata: {}\nevent: error\n\n", &[("error", "{}")]),
        ("event: error\nevent: ping\ndata: {}\n\n", &[("ping", "{}")]),
        ("event: error\ndata: {}\nevent\n\n", &[("", "{}")]),
        ("data: {\nevent: ping\ndata: }\n\n", &[("ping", "{\n}")]),
        ("data: {}\nevent: error", &[("error", "{}")]),
        ("event: error\n\ndata: {}\n\n", &[("", "{}")]),
    ] {
        let expected: Vec<_> =
            expected.iter().map(|(name, data)| ((*name).into(), (*data).into())).collect();
        assert_eq!(named(body.as_bytes()), expected, "{body:?}");
    }
}

#[test]
fn without_blank_lines_a_name_belongs_to_the_data_after_it() {
    for (body, expected) in [
        (
            "event: message_start\ndata: {\"a\":1}\nevent: ping\ndata: {}\nevent: error\ndata: {\"b\":2}",
            &[("message_start", "{\"a\":1}"), ("ping", "{}"), ("error", "{\"b\":2}")] as &[_],
        ),
        (
            "data: {}\nevent: error\ndata: {}\ndata: {}\n\n",
            &[("", "{}"), ("error", "{}"), ("", "{}")],
        ),
        ("event: ping\ndata: {}\ndata: {}\n\n", &[("ping", "{}"), ("", "{}")]),
        (
            "data: {}\nerror: {\"c\":3}\n\ndata: {}\n\n",
            &[("", "{}"), ("error", "{\"c\":3}"), ("", "{}")],
        ),
        (
            "data: {}\n{\"error\":\"x\"}\n[DONE]\n",
            &[("", "{}"), ("", "{\"error\":\"x\"}"), ("", "[DONE]")],
        ),
    ] {
        let expected: Vec<_> =
            expected.iter().map(|(name, data)| ((*name).into(), (*data).into())).collect();
        assert_eq!(named(body.as_bytes()), expected, "{body:?}");
    }
}

#[test]
fn what_is_not_utf_8_is_replaced() {
    assert_eq!(decode_all_ways(b"data: a\xffb\n\n"), ["a\u{fffd}b"]);
}

#[test]
fn white_space_is_looked_through_once() {
    let spaces = " ".repeat(1 << 20);
    for (start, line) in [("data: x", "{\n"), ("data: ", "{\n"), ("data: x", "data:\n")] {
        let body = format!("{start}{spaces}\n{}", line.repeat(1 << 16));
        let began = std::time::Instant::now();
        let mut decoder = Decoder::new(1 << 24);
        let mut piece = body.as_bytes();
        while decoder.next(&mut piece).is_ok_and(|event| event.is_some()) {}
        assert!(began.elapsed().as_secs() < 5, "{line}");
    }
}

#[test]
fn an_event_has_a_limit_however_it_is_cut() {
    for lines in ["data: 0123456789012345\n\n", "data: 01234\ndata: 0123456789\n\n"] {
        for size in [1, 3, 100] {
            let mut decoder = Decoder::new(16);
            let failed = lines.as_bytes().chunks(size).any(|mut piece| {
                loop {
                    match decoder.next(&mut piece) {
                        Ok(Some(_)) => {}
                        Ok(None) => return false,
                        Err(_) => return true,
                    }
                }
            });
            assert!(failed, "{lines:?} in pieces of {size}");
        }
    }
}

#[test]
fn a_large_event_in_small_pieces_takes_linear_time() {
    let mut decoder = Decoder::new(8 << 20);
    let mut body = b"data: ".to_vec();
    body.resize(4 << 20, b'x');
    body.extend_from_slice(b"\n\n");
    let mut events = 0;
    for mut piece in body.chunks(64) {
        while let Some(event) = decoder.next(&mut piece).unwrap() {
            events += event.data.len();
        }
    }
    assert_eq!(events, (4 << 20) - 6);
}
