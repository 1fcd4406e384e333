//! Every fixture through the core: whole, cut in two at every byte, and byte by byte, for clients
//! that stream and for those that do not. All splits give the same bytes, every answer keeps the
//! grammar, and both kinds of clients get the same message.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use creole::config::Protocol;
use creole::{Config, End, Head};
use serde_json::Value;

use support::drive::{self, Answer};
use support::expected::{self, Got};
use support::fixture::{self, Fixture};
use support::{chat, fold, responses};

#[derive(Default)]
struct Tally {
    /// Counts by kind: cases, expectations, ways of asking, and splits of the answers.
    counts: BTreeMap<String, [usize; 4]>,
    failures: Vec<String>,
}

impl Tally {
    fn add(&mut self, kind: &str, column: usize, count: usize) {
        self.counts.entry(kind.to_owned()).or_default()[column] += count;
    }

    fn merge(&mut self, other: Self) {
        for (kind, counts) in other.counts {
            (0..4).for_each(|column| self.add(&kind, column, counts[column]));
        }
        self.failures.extend(other.failures);
    }

    fn add_case(&mut self, fixture: &Fixture) {
        self.add(fixture.kind(), 0, 1);
        self.add(fixture.kind(), 1, expected::count(&fixture.expected));
    }

    /// The table is seen with `--nocapture`, its sum always.
    fn finish(self, columns: [&str; 4]) {
        let line = |name: &str, cells: [String; 4]| {
            let [a, b, c, d] = cells;
            println!("{name:<28} {a:>9} {b:>12} {c:>9} {d:>9}");
        };
        line("kind", columns.map(str::to_owned));
        let mut sum = [0; 4];
        for (kind, counts) in &self.counts {
            line(kind, counts.map(|count| count.to_string()));
            (0..4).for_each(|column| sum[column] += counts[column]);
        }
        let sums = columns.iter().zip(sum).filter(|(_, sum)| *sum > 0);
        let sums: Vec<String> = sums.map(|(column, sum)| format!("{sum} {column}")).collect();
        // What `println` writes is kept back while all is well.
        std::io::stdout().write_all(format!("\n{}\n", sums.join(", ")).as_bytes()).unwrap();
        assert!(
            self.failures.is_empty(),
            "{} failures:\n{}",
            self.failures.len(),
            self.failures.join("\n")
        );
    }
}

/// Keys that `support::expected` reads; a key that is misspelt would test nothing.
const OF_AN_ANSWER: &[&str] = &[
    "calls_carry",
    "content",
    "error",
    "headers",
    "model",
    "passed_through",
    "raw_contains",
    "status",
    "stop_details",
    "stop_reason",
    "stop_sequence",
    "streamed",
    "usage",
    "warnings",
    "whole",
];
const OF_A_VARIANT: &[&str] = &[
    "absent",
    "alphanumeric",
    "contains",
    "differ",
    "equals",
    "error",
    "lacks",
    "patch",
    "profile",
    "profile_overrides",
    "protocol",
    "roles",
    "same",
    "settings",
    "warned",
    "warnings",
];
const OF_AN_ERROR: &[&str] = &["code", "message_contains", "message_lacks", "status", "type"];

/// Keys of `meta.json` that `support::fixture` reads.
const OF_META: &[&str] = &[
    "content_type",
    "headers",
    "profile",
    "profile_overrides",
    "protocol",
    "request",
    "seen_at",
    "settings",
    "source",
    "status",
    "stream",
    "vendor",
    "why",
];

#[test]
fn every_case_tells_whose_it_is_and_where_it_was_seen() {
    for fixture in fixture::all() {
        for key in fixture.meta.as_object().unwrap().keys() {
            assert!(OF_META.contains(&key.as_str()), "{}: nothing reads {key:?}", fixture.name);
        }
        let texts = |key: &str| -> Vec<&str> {
            let list = fixture.meta[key].as_array();
            let list = list.unwrap_or_else(|| panic!("{}: {key} is no list", fixture.name));
            list.iter().map(|text| text.as_str().unwrap()).collect()
        };
        assert!(!fixture.vendor().is_empty(), "{}: vendor", fixture.name);
        assert!(
            fixture.meta["why"].as_str().is_some_and(|why| !why.is_empty()),
            "{}",
            fixture.name
        );
        texts("seen_at");
        for link in texts("source") {
            let rest = link.strip_prefix("https://").unwrap_or_default();
            let plain = rest.contains('.') && !rest.contains([' ', '|', '(', ')', '<', '>']);
            assert!(plain, "{}: {link:?} is no link", fixture.name);
        }
    }
}

#[test]
fn every_expectation_has_a_key_that_is_read() {
    for fixture in fixture::all() {
        let known = |value: &Value, keys: &[&str]| {
            for key in value.as_object().into_iter().flatten().map(|(key, _)| key.as_str()) {
                assert!(keys.contains(&key), "{}: nothing reads {key:?}", fixture.name);
            }
            known_error(&fixture.name, &value["error"]);
        };
        let Some(variants) = fixture.expected.get("variants") else {
            known(&fixture.expected, OF_AN_ANSWER);
            known(&fixture.expected["whole"], OF_AN_ANSWER);
            known(&fixture.expected["streamed"], OF_AN_ANSWER);
            // The status of an answer is beside its error.
            assert!(fixture.expected["error"].get("status").is_none(), "{}", fixture.name);
            continue;
        };
        assert_eq!(fixture.expected.as_object().unwrap().len(), 1, "{}", fixture.name);
        variants.as_array().unwrap().iter().for_each(|variant| known(variant, OF_A_VARIANT));
    }
}

fn known_error(fixture: &str, error: &Value) {
    for key in error.as_object().into_iter().flatten().map(|(key, _)| key.as_str()) {
        assert!(OF_AN_ERROR.contains(&key), "{fixture}: nothing reads {key:?} of an error");
    }
}

#[test]
fn no_two_cases_share_a_name() {
    let mut names = BTreeSet::new();
    for fixture in fixture::all() {
        assert!(names.insert(fixture.case().to_owned()), "{}: the name is taken", fixture.name);
    }
}

#[test]
fn the_page_lists_the_kinds_and_the_default_requests() {
    let page = std::fs::read_to_string(fixture::root().join("README.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let kinds: BTreeSet<String> =
        fixture::all().iter().map(|fixture| fixture.kind().to_owned()).collect();
    assert!(rows.eq(&kinds), "the rows of README.md are not the folders: {kinds:?}");
    for name in fixture::default_requests().keys() {
        assert!(page.contains(&format!("`{name}`")), "README.md does not name {name}");
    }
}

#[test]
fn a_decision_names_cases_that_exist() {
    let page = "../../docs/dev/decisions/0003-dialect-expectations.md";
    let page = std::fs::read_to_string(fixture::root().join(page)).unwrap();
    let fixtures = fixture::all();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let cases: Vec<&str> =
        rows.flat_map(|row| row.split('`')).filter(|it| it.contains('/')).collect();
    assert!(!cases.is_empty());
    for case in cases {
        assert!(fixtures.iter().any(|fixture| fixture.name == case), "there is no {case}");
    }
}

#[test]
fn a_request_is_written_once() {
    let defaults = fixture::default_requests();
    let mut used = BTreeSet::new();
    for fixture in fixture::all() {
        if let Some(default) = fixture.default_request {
            used.insert(default);
            continue;
        }
        for (name, default) in &defaults {
            assert!(*default != fixture.request, "{}: its request is {name}", fixture.name);
        }
    }
    assert!(defaults.keys().eq(&used), "of {:?}, only {used:?} are used", defaults.keys());
}

#[test]
fn upstream_answers_reach_the_client_the_same_however_they_are_cut() {
    let fixtures: Vec<Fixture> =
        fixture::all().into_iter().filter(|fixture| fixture.upstream.is_some()).collect();
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    let next = AtomicUsize::new(0);
    let tally = Mutex::new(Tally::default());
    let work = || {
        while let Some(fixture) = fixtures.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut own = Tally::default();
            let result = catch_unwind(AssertUnwindSafe(|| one_fixture(fixture, &mut own)));
            if result.is_err() {
                own.failures.push(format!("{}: panicked", fixture.name));
            }
            tally.lock().unwrap().merge(own);
        }
    };
    if cfg!(target_family = "wasm") {
        work(); // no threads there
    } else {
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(work);
            }
        });
    }
    tally.into_inner().unwrap().finish(["answers", "expectations", "ways", "splits"]);
}

fn one_fixture(fixture: &Fixture, tally: &mut Tally) {
    let Some(upstream) = &fixture.upstream else { return };
    tally.add_case(fixture);
    let config = drive::config(&fixture.config().to_string());
    let mut messages = Vec::new();
    for stream in fixture.ways() {
        tally.add(fixture.kind(), 2, 1);
        match one_way(fixture, upstream, &config, stream, tally) {
            Ok(message) => messages.extend(message),
            Err(error) => tally.failures.push(format!(
                "{} ({}): {error}",
                fixture.name,
                if stream { "streamed" } else { "whole" }
            )),
        }
    }
    let differ_by_nature =
        fixture.expected.get("streamed").is_some() || fixture.expected.get("whole").is_some();
    if let [streamed, whole] = &messages[..]
        && !differ_by_nature
        && fold::comparable(streamed) != fold::comparable(whole)
    {
        tally.failures.push(format!(
            "{}: the stream folds to {streamed}, but the whole answer is {whole}",
            fixture.name
        ));
    }
}

/// Gives the message, where there is one.
fn one_way(
    fixture: &Fixture,
    upstream: &[u8],
    config: &Arc<Config>,
    stream: bool,
    tally: &mut Tally,
) -> Result<Option<Value>, String> {
    let send = |pieces: &[&[u8]]| send(fixture, config, stream, pieces);
    let whole = send(&[upstream])?;
    let expected = expected::for_way(&fixture.expected, stream);
    let message = expected::check(&expected, got(&whole, stream))?;
    if stream && whole.head.status == 200 {
        keep(fixture, &whole.body, message.as_ref());
    }
    warnings(&expected, &whole)?;
    let reference = without_pings(&whole.body);
    // A body that is one JSON text is only collected, and a client that does not stream gets what
    // the same machine folds: for those, every seventh cut is enough.
    let every = if stream && first_of(upstream) != Some(b'{') { 1 } else { 7 };
    for cut in (0..=upstream.len()).step_by(every) {
        tally.add(fixture.kind(), 3, 1);
        let (left, right) = upstream.split_at(cut);
        same(&reference, &whole, &send(&[left, right])?, &format!("cut at byte {cut}"))?;
    }
    let bytes: Vec<&[u8]> = upstream.chunks(1).collect();
    same(&reference, &whole, &send(&bytes)?, "byte by byte")?;
    tally.add(fixture.kind(), 3, 2);
    Ok(message)
}

/// Sends the case's request, and these pieces as the upstream's answer.
fn send(
    fixture: &Fixture,
    config: &Arc<Config>,
    stream: bool,
    pieces: &[&[u8]],
) -> Result<Answer, String> {
    let (exchange, _) = drive::request(config, "/v1/messages", &[], &fixture.request(stream))
        .map_err(|reply| format!("refused: {}", String::from_utf8_lossy(&reply.body)))?;
    let (headers, pieces) = (fixture.headers(), pieces.iter().copied());
    Ok(drive::respond(exchange, fixture.status(), &headers, pieces, End::Complete))
}

fn got(answer: &Answer, stream: bool) -> Got<'_> {
    let Head { status, headers } = &answer.head;
    Got { status: *status, headers, body: &answer.body, stream }
}

/// Leaves a stream and its message in the folder that `CREOLE_STREAMS_DIR` names, for
/// `harness/clients/sdk/accumulate.py`.
fn keep(fixture: &Fixture, body: &[u8], message: Option<&Value>) {
    let Some(folder) = std::env::var_os("CREOLE_STREAMS_DIR") else { return };
    let file = format!("{}.json", fixture.name.replace('/', "-"));
    let case = serde_json::json!({"stream": String::from_utf8_lossy(body), "message": message});
    std::fs::write(std::path::Path::new(&folder).join(file), case.to_string()).unwrap();
}

fn first_of(body: &[u8]) -> Option<u8> {
    body.iter().copied().find(|byte| !byte.is_ascii_whitespace())
}

fn same(reference: &[u8], whole: &Answer, cut: &Answer, how: &str) -> Result<(), String> {
    if cut.head.status != whole.head.status {
        return Err(format!("{how}: status {} instead of {}", cut.head.status, whole.head.status));
    }
    if cut.body == whole.body {
        return Ok(());
    }
    let body = without_pings(&cut.body);
    if body != reference {
        return Err(format!(
            "{how}:\n{}\n--- instead of\n{}",
            String::from_utf8_lossy(&body),
            String::from_utf8_lossy(reference)
        ));
    }
    Ok(())
}

fn without_pings(body: &[u8]) -> Vec<u8> {
    const PING: &str = "event: ping\ndata: {\"type\":\"ping\"}\n\n";
    String::from_utf8_lossy(body).replace(PING, "").into_bytes()
}

fn warnings(expected: &Value, answer: &Answer) -> Result<(), String> {
    let found = codes(answer);
    for code in expected["warnings"].as_array().into_iter().flatten() {
        if !found.iter().any(|found| Some(found.as_str()) == code.as_str()) {
            return Err(format!("expected the warning {code}, but found {found:?}"));
        }
    }
    if expected["warned"] == true && found.is_empty() {
        return Err("expected a warning".into());
    }
    Ok(())
}

fn codes(answer: &Answer) -> Vec<String> {
    let codes = answer.report.warnings.iter().map(|warning| match warning.name.as_str() {
        "" => warning.code.to_owned(),
        name => format!("{}:{name}", warning.code),
    });
    codes.collect()
}

/// Returns the results of a case's answers, in the form of its expectations.
fn expectations(fixture: &Fixture) -> Result<Value, String> {
    let upstream = fixture.upstream.as_ref().ok_or("a request's expectations are not guessed")?;
    let config = drive::config(&fixture.config().to_string());
    let mut found = Vec::new();
    for stream in fixture.ways() {
        let answer = send(fixture, &config, stream, &[upstream])?;
        found.push(expected::of(got(&answer, stream), &codes(&answer))?);
    }
    Ok(match &found[..] {
        [streamed, whole] => expected::of_both(streamed, whole),
        _ => found.remove(0),
    })
}

/// `cargo xtask fixture` calls this with `CREOLE_WRITE`.
#[test]
fn a_case_without_expectations_gets_them() {
    for fixture in fixture::all().into_iter().filter(|fixture| fixture.expected.is_null()) {
        let path = fixture.folder.join("expected.json");
        assert!(
            std::env::var_os("CREOLE_WRITE").is_some(),
            "there is no {}; CREOLE_WRITE=1 cargo test --test fixtures gets_them writes it",
            path.display()
        );
        let found = expectations(&fixture).unwrap_or_else(|why| panic!("{}: {why}", fixture.name));
        std::fs::write(path, format!("{found:#}\n")).unwrap();
    }
}

#[test]
fn expectations_that_are_written_hold() {
    for fixture in fixture::all() {
        if fixture.upstream.is_none() || fixture.expected["passed_through"] == true {
            continue;
        }
        let config = drive::config(&fixture.config().to_string());
        let written = expectations(&fixture);
        let written = written.unwrap_or_else(|why| panic!("{}: {why}", fixture.name));
        for stream in fixture.ways() {
            let answer = send(&fixture, &config, stream, &[fixture.upstream.as_ref().unwrap()]);
            let expected = expected::for_way(&written, stream);
            let checked = expected::check(&expected, got(&answer.unwrap(), stream));
            assert!(checked.is_ok(), "{}: {checked:?}", fixture.name);
            let by_hand = expected::for_way(&fixture.expected, stream);
            for key in ["content", "error", "stop_reason", "stop_sequence"] {
                let lost = !by_hand[key].is_null() && expected[key].is_null();
                assert!(!lost, "{}: no {key} in {written}", fixture.name);
            }
        }
    }
}

#[test]
fn requests_reach_each_upstream_in_the_form_it_takes() {
    let mut tally = Tally::default();
    for fixture in fixture::all() {
        for (number, variant) in
            fixture.expected["variants"].as_array().into_iter().flatten().enumerate()
        {
            tally.add(fixture.kind(), 2, 1);
            if number == 0 {
                tally.add_case(&fixture);
            }
            if let Err(error) = one_request(&fixture, variant) {
                let profile = &variant["profile"];
                tally
                    .failures
                    .push(format!("{} (variant {number}, {profile}): {error}", fixture.name));
            }
        }
    }
    tally.finish(["requests", "expectations", "variants", ""]);
}

fn one_request(fixture: &Fixture, variant: &Value) -> Result<(), String> {
    let profile = variant["profile"].as_str().unwrap();
    let config = drive::config(&fixture::config_of(variant).to_string());
    let mut request = fixture::patched(&fixture.request, &variant["patch"]);
    if fixture.meta["stream"] == true {
        request["stream"] = true.into();
    }
    match drive::request(&config, "/v1/messages", &[], request.to_string().as_bytes()) {
        Ok((exchange, upstream)) => {
            let body: Value = serde_json::from_slice(&upstream.body)
                .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&upstream.body)))?;
            if variant.get("error").is_some() {
                return Err(format!("expected {}, but sent {body}", variant["error"]));
            }
            let target = config.upstreams.get("default").unwrap();
            if target.protocol == Protocol::Responses {
                responses::check(&body)?;
            } else {
                let rules = chat::Rules {
                    name_chars_max: target.profile.max_tool_name,
                    id_chars_max: target.profile.max_id_length,
                    tool_choice_any: profile == "mistral",
                };
                chat::check(&body, rules)?;
            }
            expected::same_request(variant, &body)?;
            warnings(variant, &Answer { report: exchange.report(), ..Answer::default() })
        }
        Err(reply) => {
            let body: Value =
                serde_json::from_slice(&reply.body).map_err(|error| error.to_string())?;
            support::grammar::error_body(&body)?;
            let Some(expected) = variant.get("error") else { return Err(body.to_string()) };
            if expected.get("status").is_some_and(|status| *status != reply.head.status) {
                return Err(format!("status {}: {body}", reply.head.status));
            }
            expected::same_error(expected, &body)
        }
    }
}
