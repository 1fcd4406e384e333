//! Tests of `credentials.rs`.

use super::*;
use crate::config::Config;

fn config(headers: &str) -> Result<Config, String> {
    let text = format!(r#"{{"upstreams":{{"u":{{"headers":{headers}}}}}}}"#);
    let secret = |name: &str| match name {
        "ID" => Some(" id-canary\n".to_owned()),
        "LONG" => Some("k".repeat(CREDENTIAL_BYTES_MAX + 1)),
        "MOST" => Some("k".repeat(CREDENTIAL_BYTES_MAX)),
        _ => None,
    };
    Config::from_json(&text, secret).map_err(|error| error.to_string())
}

#[test]
fn headers_of_the_operator_are_texts_or_secrets() {
    let read = config(r#"{"CF-Access-Client-Id":{"secret":"ID"},"x-team":"a b"}"#).unwrap();
    let upstream = read.upstreams.get("u").unwrap();
    assert!(upstream.has_secrets());
    let header = |name: &str, value: &str, is_secret| UpstreamHeader {
        name: name.to_owned(),
        value: value.to_owned(),
        is_secret,
    };
    let expected =
        [header("cf-access-client-id", "id-canary", true), header("x-team", "a b", false)];
    assert_eq!(upstream.headers, expected);
    assert!(!format!("{read:?}").contains("canary"));
    assert!(!config(r#"{"x-team":"a"}"#).unwrap().upstreams.get("u").unwrap().has_secrets());
}

#[test]
fn a_header_that_is_creoles_or_cannot_be_sent_is_refused_with_its_name() {
    let own = "expected another name, because Creole sets this header itself";
    for (headers, expected) in [
        (r#"{"Host":"a"}"#, format!("Host: {own}")),
        (r#"{"content-length":"1"}"#, format!("content-length: {own}")),
        (r#"{"transfer-encoding":"chunked"}"#, format!("transfer-encoding: {own}")),
        (r#"{"connection":"x"}"#, format!("connection: {own}")),
        (r#"{"accept-encoding":"gzip"}"#, format!("accept-encoding: {own}")),
        (r#"{"x-creole-hops":"0"}"#, format!("x-creole-hops: {own}")),
        (r#"{"x-envoy-original-dst-host":"a"}"#, format!("x-envoy-original-dst-host: {own}")),
        (r#"{"Authorization":"a"}"#, "Authorization: expected another name (set key".to_owned()),
        (r#"{":path":"/"}"#, ":path: expected the name of a header".to_owned()),
        (r#"{"a b":"c"}"#, "a b: expected the name of a header".to_owned()),
        (r#"{"x-a":"a\nb"}"#, "x-a: expected a value in one line".to_owned()),
        (r#"{"x-a":""}"#, "x-a: expected a value in one line".to_owned()),
        (r#"{"x-a":"1","X-A":"2"}"#, "X-A: expected each name once".to_owned()),
        (r#"{"x-a":1}"#, "x-a: expected {\"env\": NAME}".to_owned()),
        (
            r#"{"x-a":{"secret":"GONE"}}"#,
            "x-a: expected an environment variable called \"GONE\"".to_owned(),
        ),
        (
            r#"{"x-a":{"secret":"LONG"}}"#,
            "x-a: expected a value of at most 32768 bytes, but found one of 32769".to_owned(),
        ),
    ] {
        let error = config(headers).unwrap_err();
        let expected = ["configuration: upstreams.u.headers.", &expected].concat();
        assert!(error.starts_with(&expected), "{headers}: {error}");
    }
    assert!(config(r#"{"x-a":{"secret":"MOST"}}"#).is_ok());
}

#[test]
fn a_key_that_is_too_long_is_refused_at_the_start_with_its_length() {
    let long = "k".repeat(40_000);
    let error =
        Config::from_json(r#"{"upstreams":{"u":{"key":{"secret":"K"}}}}"#, |_| Some(long.clone()));
    let expected = "configuration: upstreams.u.key.secret: expected a key of at most 32768 bytes, \
                    but found one of 40000";
    assert_eq!(error.unwrap_err().to_string(), expected);
    // Entra tokens with groups have this length.
    let long = "k".repeat(10_455);
    let read =
        Config::from_json(r#"{"upstreams":{"u":{"key":{"secret":"K"}}}}"#, |_| Some(long.clone()));
    assert!(read.is_ok());
}

/// Reads a document on a host with a file for each path that ends with a name.
fn with_files(text: &str) -> Result<Config, String> {
    let file = |path: &str| match path.rsplit('/').next().unwrap_or_default() {
        "gone" => Err("cannot read it".to_owned()),
        name => Ok(format!("key-of-{name}\n")),
    };
    let secrets = Secrets { variable: &|_| Some("of-a-variable".to_owned()), file: &file };
    Config::from_document(text, &secrets).map_err(|error| error.to_string())
}

#[test]
fn a_credential_is_read_from_a_file() {
    let config = with_files(
        r#"{"upstreams":{"u":{"url":"http://u","key":{"file":"/keys/u"},"headers":{"x-a":{"file":"C:\\keys/x"}}}},
            "client_keys":[{"file":"/keys/alice"},{"file":"/keys/bob","name":"robert"}],
            "server_tools":{"web_search":{"kind":"brave","key":{"file":"/keys/brave"}}}}"#,
    )
    .unwrap();
    let upstream = config.upstreams.get("u").unwrap();
    assert_eq!(upstream.key, Key::Secret("key-of-u".to_owned()));
    assert_eq!(upstream.headers[0].value, "key-of-x");
    assert_eq!(format!("{:?}", config.client_keys), "{\"alice\", \"robert\"}");
    assert_eq!(config.settings.server_tools.web_search.key.secret(), Some("key-of-brave"));
}

#[test]
fn a_file_that_is_none_is_refused_without_its_name_where_that_may_be_a_key() {
    let refused =
        |key: &str| with_files(&[r#"{"upstreams":{"u":{"key":"#, key, "}}}"].concat()).unwrap_err();
    let told = refused(r#"{"file":"/keys/gone"}"#);
    assert_eq!(told, "configuration: upstreams.u.key.file: cannot read it");
    for key in [r#"{"file":"sk-live-1"}"#, r#"{"file":""}"#] {
        let told = refused(key);
        assert!(told.contains("expected the absolute path of a file"), "{told}");
        assert!(!told.contains("sk-live"), "{told}");
    }
    assert!(refused(r#"{"file":"/keys/u","env":"K"}"#).contains("but found both"));
    let text = r#"{"upstreams":{"u":{"key":{"file":"/keys/u"}}}}"#;
    let told = Config::from_json(text, |_| None).unwrap_err().to_string();
    assert!(told.contains("key.file: this host reads no files"), "{told}");
}
