//! Upstreams behind TLS, with a private certificate authority.
// Helpers outside of #[test] functions fail like tests do.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod rig;

use std::sync::Arc;

use bytes::Bytes;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rig::{Gateway, Upstream, client, messages, request, send};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// A server's side for `name`, and the file with the authority that signed it.
fn tls(name: &str, protocols: &[&str]) -> (TlsAcceptor, String) {
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
