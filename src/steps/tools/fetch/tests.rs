use super::*;
use crate::Config;

/// Time of all answers: 2026-11-30T10:00:00Z.
const NOW: Millis = 1_796_032_800_000;

fn settings(web_fetch: &str) -> Settings {
    let text = format!(r#"{{"server_tools":{{"web_fetch":{web_fetch}}}}}"#);
    Config::from_json(&text, |_| None).unwrap().settings
}

fn job(input: &str, web_fetch: &str, tool: FetchTool) -> Result<FetchJob, FetchFailure> {
    let settings = settings(web_fetch).server_tools;
    FetchJob::new(input, FetchSetup::new(&tool, &settings, NOW).unwrap())
}

fn plain_job() -> FetchJob {
    job(r#"{"url":"https://a.example/x"}"#, "{}", FetchTool::default()).unwrap()
}

fn answer(status: u16, location: Option<&str>, body: &str) -> Came {
    Came::Web(WebAnswer {
        status,
        location: location.map(str::to_owned),
        content_type: Some("text/html".to_owned()),
        session_id: None,
        body: body.into(),
        is_whole: true,
    })
}

fn taken(job: &mut FetchJob, came: Came) -> Option<FetchOutcome> {
    job.take_answer(came)
}

#[test]
fn a_page_is_fetched_with_headers_of_its_own_and_becomes_text() {
    let mut job = plain_job();
    let Question::Web(question) = job.question() else { panic!("no page is asked for") };
    assert_eq!(question.url, "https://a.example/x");
    assert!(!question.may_be_private);
    assert_eq!(question.accept, ACCEPT);
    assert!(question.user_agent.is_some_and(|agent| agent.starts_with("Creole/")));
    let page = "<title>T</title><p>Hi<script>x</script>";
    let fetched = taken(&mut job, answer(200, None, page)).unwrap().unwrap();
    let expected = FetchedPage {
        url: "https://a.example/x".to_owned(),
        title: Some("T".to_owned()),
        text: "Hi".to_owned(),
        retrieved_at: Some("2026-11-30T10:00:00Z".to_owned()),
        is_to_be_cited: false,
    };
    assert!(fetched == expected, "{:?}", fetched.retrieved_at);
}

#[test]
fn an_input_without_a_url_is_invalid() {
    for input in ["", "not json", "{}", "[]", r#"{"url":7}"#, r#"{"url":null}"#, r#"{"url":""}"#] {
        let failure = job(input, "{}", FetchTool::default()).unwrap_err();
        assert_eq!(failure, FetchFailure::InvalidToolInput, "{input}");
    }
}

#[test]
fn both_lists_of_domains_must_permit_the_address_and_each_redirection() {
    let input = r#"{"url":"https://docs.a.example/x"}"#;
    let list = |entry: &str| vec![entry.to_owned()];
    let allowed = |entry| FetchTool { allowed_domains: list(entry), ..FetchTool::default() };
    let operator = r#"{"allowed_domains":["a.example"],"blocked_domains":["secret.a.example"]}"#;
    assert!(job(input, operator, allowed("docs.a.example")).is_ok());
    for (web_fetch, tool) in [
        ("{}", allowed("b.example")),
        (r#"{"allowed_domains":["b.example"]}"#, allowed("a.example")),
        (r#"{"blocked_domains":["a.example"]}"#, FetchTool::default()),
        ("{}", FetchTool { blocked_domains: list("a.example"), ..FetchTool::default() }),
    ] {
        let failure = job(input, web_fetch, tool).unwrap_err();
        assert_eq!(failure, FetchFailure::UrlNotAllowed);
    }
    for (location, failure) in [
        ("https://a.example/y", None),
        ("https://b.example/", Some(FetchFailure::UrlNotAllowed)),
        ("https://secret.a.example/", Some(FetchFailure::UrlNotAllowed)),
    ] {
        let mut job = job(input, operator, allowed("a.example")).unwrap();
        let led = taken(&mut job, answer(302, Some(location), ""));
        assert_eq!(led.map(Result::unwrap_err), failure, "{location}");
    }
}

#[test]
fn redirections_are_followed_up_to_the_limit_and_checked() {
    for status in [301, 302, 303, 307, 308] {
        let mut job = plain_job();
        assert!(taken(&mut job, answer(status, Some("/y?z"), "")).is_none());
        let Question::Web(question) = job.question() else { panic!("no page is asked for") };
        assert_eq!(question.url, "https://a.example/y?z");
        let fetched = taken(&mut job, answer(200, None, "<p>x")).unwrap().unwrap();
        assert_eq!(fetched.url, "https://a.example/y?z");
    }
    let mut endless = plain_job();
    for _ in 0..5 {
        assert!(taken(&mut endless, answer(302, Some("https://c.example/"), "")).is_none());
    }
    let last = taken(&mut endless, answer(302, Some("https://c.example/"), ""));
    assert_eq!(last.unwrap().unwrap_err(), FetchFailure::UrlNotAccessible);

    let mut job = plain_job();
    assert!(taken(&mut job, answer(302, Some("https://c.example/"), "")).is_none());
    let last = taken(&mut job, answer(302, Some("http://169.254.169.254/"), ""));
    assert_eq!(last.unwrap().unwrap_err(), FetchFailure::UrlNotAllowed);
    let mut job = plain_job();
    let plain = taken(&mut job, answer(302, Some("http://a.example/"), ""));
    assert_eq!(plain.unwrap().unwrap_err(), FetchFailure::UrlNotAllowed);
    let nowhere = taken(&mut plain_job(), answer(302, None, ""));
    assert_eq!(nowhere.unwrap().unwrap_err(), FetchFailure::UrlNotAccessible);
}

#[test]
fn what_went_wrong_has_its_code() {
    let failed = |came| taken(&mut plain_job(), came).unwrap().unwrap_err();
    for (status, failure) in [
        (429, FetchFailure::TooManyRequests),
        (404, FetchFailure::UrlNotAccessible),
        (401, FetchFailure::UrlNotAccessible),
        (500, FetchFailure::UrlNotAccessible),
        (304, FetchFailure::UrlNotAccessible),
    ] {
        assert_eq!(failed(answer(status, None, "")), failure, "{status}");
    }
    for nothing in [Nothing::Unreachable, Nothing::TimedOut, Nothing::BrokeOff] {
        assert_eq!(failed(Came::Nothing(nothing)), FetchFailure::UrlNotAccessible);
    }
    let not_allowed = Came::Nothing(Nothing::NotAllowed);
    assert_eq!(failed(not_allowed), FetchFailure::UrlNotAllowed);
    let large = "x".repeat((4 << 20) + 1);
    assert_eq!(failed(answer(200, None, &large)), FetchFailure::ContentTooLarge);
    let Came::Web(half) = answer(200, None, "x") else { return };
    let half = Came::Web(WebAnswer { is_whole: false, ..half });
    assert_eq!(failed(half), FetchFailure::UrlNotAccessible);
    let Came::Web(image) = answer(200, None, "x") else { return };
    let image = Came::Web(WebAnswer { content_type: Some("image/png".to_owned()), ..image });
    assert_eq!(failed(image), FetchFailure::UnsupportedContentType);
}

#[test]
fn only_the_body_of_a_page_is_read_and_the_smaller_limit_wins() {
    let plain = plain_job();
    let limits = |status| plain.limits(status, &settings("{}")).bytes_max;
    assert_eq!([limits(200), limits(302), limits(404)], [(4 << 20) + 1, 0, 0]);
    let small = FetchTool { max_content_tokens: Some(10), ..FetchTool::default() };
    let input = r#"{"url":"https://a.example/x"}"#;
    for (web_fetch, tool, bytes) in
        [("{}", small, 36), (r#"{"content_tokens_max":5}"#, FetchTool::default(), 18)]
    {
        let mut job = job(input, web_fetch, tool).unwrap();
        let fetched = taken(&mut job, answer(200, None, &"y".repeat(100))).unwrap().unwrap();
        let text = fetched.text;
        assert_eq!(text, "y".repeat(bytes) + "\n\n[\u{2026} cut \u{2026}]");
    }
}

#[test]
fn a_job_shows_no_address_in_logs() {
    let shown = format!("{:?}", plain_job());
    assert!(!shown.contains("/x"), "{shown}");
}
