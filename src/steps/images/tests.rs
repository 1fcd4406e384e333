use std::slice::from_ref;

use super::*;
use crate::Config;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n01234567";
const PNG_SOURCE: &str =
    r#"{"type":"base64","media_type":"image/png","data":"iVBORw0KGgowMTIzNDU2Nw=="}"#;

fn settings(more: &str) -> Settings {
    let text = format!(r#"{{"fetch_images": {{"hosts": ["*.a.example"]{more}}}}}"#);
    Config::from_json(&text, |_| None).unwrap().settings
}

fn image(url: &str) -> String {
    format!(r#"{{"type":"image","source":{{"type":"url","url":"{url}"}}}}"#)
}

/// Writes a request body with messages of the user, and one message of the assistant between each
/// two.
fn body(contents: &[&[String]]) -> String {
    let messages: Vec<String> = contents
        .iter()
        .map(|content| format!(r#"{{"role":"user","content":[{}]}}"#, content.join(",")))
        .collect();
    let between = r#",{"role":"assistant","content":"x"},"#;
    format!(r#"{{"model":"m","max_tokens":9,"messages":[{}]}}"#, messages.join(between))
}

fn asked(images: &Images) -> Option<String> {
    Some(images.wanted.get(images.at)?.address.url())
}

/// Answers each request for an image with `came`, and returns the requested URLs.
fn run(images: &mut Images, came: Result<&[u8], Missing>) -> Vec<String> {
    let mut urls = Vec::new();
    while let Some(url) = asked(images) {
        urls.push(url);
        images.take_image(came);
    }
    urls
}

fn written(images: Images, body: &str) -> (Result<String, String>, u64) {
    let mut warnings = Warnings::new(false);
    let written = images.written(body, &mut warnings);
    let written = written.map(|body| String::from_utf8(body).unwrap());
    (written.map_err(|error| error.message.clone()), warnings.count())
}

#[test]
fn the_newest_is_asked_for_first_and_equal_ones_once() {
    let (one, two) = ("https://i.a.example/1", "https://i.a.example/2?b");
    let result = format!(
        r#"{{"type":"tool_result","tool_use_id":"t","content":[{},{{"type":"text","text":"y"}}]}}"#,
        image(two)
    );
    let document = format!(
        r#"{{"type":"document","source":{{"type":"content","content":[{}]}}}}"#,
        image(one)
    );
    let body =
        body(&[&[image(one), document], &[result, image(one), image("https:\\/\\/i.a.example/3")]]);
    let mut images = Images::of(&body, &settings(""), true).unwrap();
    let urls = run(&mut images, Ok(PNG));
    assert_eq!(urls, ["https://i.a.example/3", one, two]);
    assert_eq!(images.counts(), (3, 0));
    let remote = |url| format!(r#"{{"type":"url","url":"{url}"}}"#);
    let mut expected = body.clone();
    for url in [one, two, "https:\\/\\/i.a.example/3"] {
        expected = expected.replace(&remote(url), PNG_SOURCE);
    }
    assert_eq!(written(images, &body), (Ok(expected), 0));
}

#[test]
fn what_is_missing_is_words_in_the_history_and_an_error_in_what_is_new() {
    let url = "https://i.a.example/1";
    let marked = image(url).replace("}}", r#"},"cache_control":{"type":"ephemeral"}}"#);
    let result = |content: &str| {
        format!(r#"{{"type":"tool_result","tool_use_id":"t","content":[{content}]}}"#)
    };
    for missing in [
        Missing::Unreachable,
        Missing::TimedOut,
        Missing::Status(404),
        Missing::Redirected,
        Missing::BrokeOff,
        Missing::TooLarge(5),
        Missing::NoImage,
    ] {
        let old = body(&[from_ref(&marked), &[result(&image(url))]]);
        let mut images = Images::of(&old, &settings(""), true).unwrap();
        assert_eq!(run(&mut images, Err(missing)).len(), 1);
        assert_eq!(images.counts(), (0, 1));
        let words = format!(r#"{{"type":"text","text":"[image omitted: {}]"}}"#, missing.words());
        let with_mark = words.replace("]\"}", r#"]","cache_control":{"type":"ephemeral"}}"#);
        let expected = old.replace(&marked, &with_mark).replace(&image(url), &words);
        assert_eq!(written(images, &old), (Ok(expected), 2));

        let new =
            body(&[&[image(url)], &["{\"type\":\"text\",\"text\":\"y\"}".to_owned(), image(url)]]);
        let mut images = Images::of(&new, &settings(""), true).unwrap();
        run(&mut images, Err(missing));
        let told = written(images, &new).0.unwrap_err();
        let expected = format!(
            "messages[2].content[1].source.url: the image could not be fetched: {}; send it as base64",
            missing.words()
        );
        assert_eq!(told, expected);
    }
}

#[test]
fn a_host_that_is_not_allowed_is_never_asked() {
    for url in [
        "https://evil.test/1",
        "http://i.a.example/1",
        "https://i.a.example:8443/",
        "https://i.a.example@evil.test/",
        "https://127.0.0.1/",
        "https://[::ffff:127.0.0.1]/",
        "https://2130706433/",
        "https://a.example/",
        "file:///i.a.example",
        "https://i.a.example\\\\.evil.test/",
    ] {
        let old = body(&[&[image(url)], &["{\"type\":\"text\",\"text\":\"y\"}".to_owned()]]);
        let images = Images::of(&old, &settings(""), true).unwrap();
        assert_eq!(asked(&images), None, "{url}");
        assert_eq!(written(images, &old), (Ok(old), 0), "{url}");
        let new = body(&[&[image(url)]]);
        let images = Images::of(&new, &settings(""), true).unwrap();
        let told = written(images, &new).0.unwrap_err();
        assert_eq!(
            told,
            "messages[0].content[0].source.url: the image could not be fetched: this gateway fetches none from there; send it as base64"
        );
    }
}

#[test]
fn a_redirection_leads_to_allowed_hosts_alone_and_not_for_ever() {
    let body = body(&[
        &[image("https://i.a.example/1")],
        &["{\"type\":\"text\",\"text\":\"y\"}".to_owned()],
    ]);
    let mut images = Images::of(&body, &settings(""), true).unwrap();
    images.redirect("/2");
    assert_eq!(asked(&images).as_deref(), Some("https://i.a.example/2"));
    images.redirect("https://j.a.example/3");
    assert_eq!(asked(&images).as_deref(), Some("https://j.a.example/3"));
    images.take_image(Ok(PNG));
    assert_eq!(images.counts(), (1, 0));
    for location in
        ["http://i.a.example/", "https://169.254.169.254/latest", "https://evil.test/", "x", ""]
    {
        let mut images = Images::of(&body, &settings(""), true).unwrap();
        images.redirect(location);
        assert_eq!((asked(&images), images.counts()), (None, (0, 1)), "{location}");
        assert!(written(images, &body).0.unwrap().contains("elsewhere"));
    }
    let mut images = Images::of(&body, &settings(""), true).unwrap();
    for at in 0..3 {
        images.redirect(&format!("/{at}"));
        assert!(asked(&images).is_some());
    }
    images.redirect("/3");
    assert_eq!(asked(&images), None);
}

#[test]
fn a_request_has_no_more_images_and_bytes_than_it_may() {
    let url = |at: usize| format!("https://i.a.example/{at}");
    let urls: Vec<String> = (0..22).map(|at| image(&url(at))).collect();
    let text = "{\"type\":\"text\",\"text\":\"y\"}".to_owned();
    let old = body(&[&urls, from_ref(&text)]);
    let mut images = Images::of(&old, &settings(""), true).unwrap();
    let newest: Vec<String> = (2..22).rev().map(url).collect();
    assert_eq!(run(&mut images, Ok(PNG)), newest);
    let (told, warned) = written(images, &old);
    assert_eq!(
        told.unwrap().matches("[image omitted: this gateway fetches 20 for a request]").count(),
        2
    );
    assert_eq!(warned, 2);

    let old = body(&[urls.get(..4).unwrap(), from_ref(&text)]);
    let large = [PNG, &[0; 2_000]].concat();
    let mut images = Images::of(&old, &settings(r#","bytes_max":1024"#), true).unwrap();
    run(&mut images, Ok(&large));
    assert_eq!(images.counts(), (0, 4));
    let mut images = Images::of(&old, &settings(r#","bytes_max":1024"#), true).unwrap();
    run(&mut images, Ok(large.get(..1024).unwrap()));
    assert_eq!(images.counts(), (4, 0));

    // The request has one image so often that its data cannot replace every copy.
    let often = vec![image("https://i.a.example/1"); 20];
    let old = body(&[&often, &[text]]);
    let mut settings = settings("");
    settings.request_bytes_max = old.len() + 10_000;
    let mut images = Images::of(&old, &settings, true).unwrap();
    assert_eq!(run(&mut images, Ok(&large)).len(), 1);
    let (told, warned) = written(images, &old);
    let told = told.unwrap();
    assert!(told.len() <= settings.request_bytes_max + 20 * 100);
    assert_eq!((told.matches("image/png").count(), warned), (3, 17));
    let newest = told.rfind("image/png").unwrap();
    assert!(told.rfind("omitted").unwrap() < newest, "the newest has room");
}

#[test]
fn images_that_are_there_and_bodies_without_any_are_left_alone() {
    let here = [
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}"#,
        r#"{"type":"image","source":{"type":"url","url":"data:image/png;base64,iVBORw0KGgo="}}"#,
        r#"{"type":"document","source":{"type":"url","url":"https://i.a.example/a.pdf"}}"#,
        r#"{"type":"text","text":"{\"url\": \"https://i.a.example/1\"}"}"#,
    ]
    .map(str::to_owned);
    assert!(Images::of(&body(&[&here]), &settings(""), true).is_none());
    for broken in [
        "",
        "{",
        "[]",
        r#"{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url"}}]}]}"#,
    ] {
        assert!(Images::of(broken, &settings(""), true).is_none());
    }
}

#[test]
fn only_an_image_that_models_take_is_an_image() {
    for (bytes, expected) in [
        (PNG, Some("image/png")),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF\0\x01".as_slice(), Some("image/jpeg")),
        (b"GIF89a\x01\x00\x01\x00\x80\x00", Some("image/gif")),
        (b"RIFF\x22\x00\x00\x00WEBPVP8 ", Some("image/webp")),
        (b"RIFF\x22\x00\x00\x00WAVEfmt ", None),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", None),
        (b"<!doctype html>", None),
        (b"\x1f\x8b\x08\x00", None),
        (b"", None),
    ] {
        let source = source_of(bytes);
        let found = source.ok().and_then(|source| {
            json::member(&source, "media_type")
                .and_then(json::string)
                .map(|it| it.decode().into_owned())
        });
        assert_eq!(found.as_deref(), expected);
    }
}

#[test]
fn fetching_ends_where_the_next_image_cannot_fit_or_the_request_is_refused() {
    let urls: Vec<String> = (1..=5).map(|at| image(&format!("https://i.a.example/{at}"))).collect();
    let new = body(&[&urls]);
    let old = body(&[&urls, &[r#"{"type":"text","text":"x"}"#.to_owned()]]);
    let fetched = |body: &str, space: usize, must_come: bool, came: Result<&[u8], Missing>| {
        let mut settings = settings("");
        settings.request_bytes_max = body.len() + space;
        let mut images = Images::of(body, &settings, must_come).unwrap();
        run(&mut images, came).len()
    };
    assert_eq!(fetched(&old, 10_000, false, Ok(PNG)), 5);
    assert_eq!(fetched(&old, 2 * PNG_SOURCE.len(), false, Ok(PNG)), 3, "two fit");
    assert_eq!(fetched(&old, 10_000, false, Err(Missing::Status(404))), 5);
    assert_eq!(fetched(&new, 10_000, true, Err(Missing::Status(404))), 1, "it is refused");
    let foreign = [urls.as_slice(), &[image("https://elsewhere.example/1")]].concat();
    assert_eq!(fetched(&body(&[&foreign]), 10_000, true, Ok(PNG)), 0, "it is refused anyway");
}

#[test]
fn a_request_that_is_refused_names_the_image_for_which_it_is() {
    let allowed = image("https://i.a.example/1");
    let foreign = image("https://elsewhere.example/1");
    let body_of = body(&[&[foreign, allowed.clone(), allowed]]);
    let images = Images::of(&body_of, &settings(""), true).unwrap();
    let error = written(images, &body_of).0.unwrap_err();
    assert!(error.starts_with("messages[0].content[0].source.url"), "{error}");
    assert!(error.contains("this gateway fetches none from there"), "{error}");
}
