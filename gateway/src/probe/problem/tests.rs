//! Tests of `problem.rs`.

use super::*;

#[test]
fn each_problem_says_in_one_line_what_to_do() {
    let cure = |reason: Unreachable| Problem::unreachable("http://localhost:11434", &reason).text;
    assert!(cure(Unreachable::Refused).contains("start the server (`ollama serve`)"));
    let authority = cure(Unreachable::AuthorityAsServer);
    assert!(authority.contains("`openssl req -x509 -addext basicConstraints=critical,CA:FALSE`"));
    assert!(authority.ends_with("name it in SSL_CERT_FILE"));
    assert!(cure(Unreachable::BadCertificate).ends_with("mend it at the server"));
    assert!(cure(Unreachable::NoName).contains("the name in localhost:11434"));
    for reason in [
        Unreachable::TimedOut,
        Unreachable::NoHost,
        Unreachable::NotTls,
        Unreachable::UnknownIssuer,
        Unreachable::Expired,
        Unreachable::OtherName,
        Unreachable::AuthorityAsServer,
        Unreachable::BadCertificate,
        Unreachable::NotHttp,
        Unreachable::Closed,
    ] {
        let text = cure(reason);
        assert!(text.starts_with("http://localhost:11434") || text.contains(" to http"), "{text}");
        assert!(text.contains(": ") && !text.contains('\n'), "{text}");
    }
}

#[test]
fn a_key_is_asked_for_where_it_can_be_given_and_is_never_told() {
    let mut upstream = Upstream::named("u");
    "https://api.example.com".clone_into(&mut upstream.url);
    for (key, code, cure) in [
        (Key::Client, "no_key", "--key-env NAME"),
        (Key::Secret("sk-secret".to_owned()), "key", "it is wrong"),
        (Key::None, "no_key", "\"none\""),
    ] {
        upstream.key = key;
        let Problem { code: found, text, .. } = Problem::key(&upstream, 401);
        assert_eq!(found, code);
        assert!(text.contains(cure) && text.contains("401") && !text.contains("sk-"), "{text}");
    }
    upstream.key = Key::Client;
    "https://api.groq.com".clone_into(&mut upstream.url);
    assert!(Problem::key(&upstream, 401).text.ends_with("variable GROQ_API_KEY"));
}
