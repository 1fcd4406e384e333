//! Upstreams behind TLS, with a private certificate authority.

use std::process::Command;
use std::sync::{Arc, Mutex};

use crate::rig::{self, Gateway, Upstream, client, messages, request, send};
use bytes::Bytes;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

const KEY: &str = "sk-canary-of-the-upstream";

/// A server's side for `name`, and the file with the authority that signed it.
pub(crate) fn tls(name: &str, protocols: &[&str]) -> (TlsAcceptor, String) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    (TlsAcceptor::from(Arc::new(config)), rig::file(&authority.pem()))
}

async fn upstream(acceptor: TlsAcceptor) -> Upstream {
    Upstream::start_with_tls(acceptor, |_, mut out| {
        tokio::spawn(async move { out.send_data(Bytes::from(rig::COMPLETION)).await });
        (200, "application/json")
    })
    .await
}

#[tokio::test]
async fn a_private_authority_is_trusted_and_each_stream_has_a_connection_of_its_own() {
    // In one HTTP/2 connection, a client that does not read would hold up all others.
    for protocols in [&["http/1.1"] as &[&str], &["h2", "http/1.1"]] {
        let (acceptor, authority) = tls("localhost", protocols);
        let upstream = upstream(acceptor).await;
        let url = format!("https://localhost:{}/v1", upstream.address.port());
        let env = [("SSL_CERT_FILE", authority.as_str())];
        let gateway = Gateway::start_with(&["--upstream", &url], "{}", &env);
        for http2 in [false, true] {
            let got = send(&client(http2), request("POST", &gateway.url("/v1/x"), "{}")).await;
            assert_eq!((got.status.as_u16(), got.body.as_str()), (200, rig::COMPLETION));
            assert_eq!(upstream.last().version, hyper::Version::HTTP_11);
            let sent = request("POST", &gateway.url("/v1/messages"), messages(false));
            let got = send(&client(http2), sent).await;
            assert_eq!(got.json()["content"][0]["text"], "Hi there");
            assert_eq!(upstream.last().version, hyper::Version::HTTP_11);
        }
    }
}

#[tokio::test]
async fn certificates_that_are_not_trusted_are_a_502_that_says_why() {
    for (name, trusted, reason) in [
        ("localhost", false, "the issuer of its certificate is unknown"),
        ("elsewhere.example", true, "its certificate is for another name"),
    ] {
        let (acceptor, authority) = tls(name, &["http/1.1"]);
        let upstream = upstream(acceptor).await;
        let url = format!("https://localhost:{}/v1", upstream.address.port());
        let env = [("SSL_CERT_FILE", authority.as_str())];
        let env = if trusted { &env[..] } else { &[] };
        let gateway = Gateway::start_with(&["--upstream", &url], "{}", env);
        let got = send(&client(false), request("POST", &gateway.url("/v1/x"), "{}")).await;
        got.assert_error(502, "api_error", reason);
        assert!(!got.body.contains("localhost") && !got.body.contains("example"), "{got:?}");
    }
}

#[tokio::test]
async fn an_upstream_without_tls_behind_https_is_a_502_that_says_so() {
    let upstream = Upstream::answering(200, "text/plain", "no").await;
    let url = format!("https://{}/v1", upstream.address);
    let gateway = Gateway::start(&url, "{}");
    let got = send(&client(false), request("POST", &gateway.url("/v1/x"), "{}")).await;
    got.assert_error(502, "api_error", "it does not speak TLS");
    assert_eq!(got.headers["x-should-retry"], "false");
}

/// A server whose TLS breaks off, and which answers without TLS; with all that it was sent.
async fn without_tls() -> (String, Arc<Mutex<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let heard = Arc::new(Mutex::new(String::new()));
    let hears = Arc::clone(&heard);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = vec![0; 16 << 10];
            let read = stream.read(&mut bytes).await.unwrap_or(0);
            let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
            // A handshake of TLS begins with 22.
            if bytes[0] == 22 {
                continue;
            }
            hears.lock().unwrap().push_str(&text);
            let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (url, heard)
}

#[tokio::test]
async fn the_other_scheme_is_asked_without_the_key_the_headers_and_the_path() {
    let (url, heard) = without_tls().await;
    let headers = json!({"x-own": KEY, "api-version": KEY});
    let upstream = json!({"key": {"env": "CANARY"}, "headers": headers});
    let config = rig::file(&json!({"upstreams": {"default": upstream}}).to_string());
    let own = format!("{url}/secret-path");
    let mut check = Command::new(env!("CARGO_BIN_EXE_creole"));
    check.args(["check", "--config", &config, "--upstream", &own]).env("CANARY", KEY);
    let checked = tokio::task::spawn_blocking(move || check.output().unwrap()).await.unwrap();
    let told = String::from_utf8(checked.stdout).unwrap();
    assert!(told.contains("write http:// in place of https://"), "{told}");
    let heard = heard.lock().unwrap().clone();
    assert!(heard.starts_with("GET / HTTP/1.1"), "{heard}");
    for hidden in [KEY, "secret-path", "authorization", "api-key", "x-own"] {
        assert!(!heard.contains(hidden), "{heard}");
    }
}
