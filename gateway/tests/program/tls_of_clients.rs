//! Certificates of the gateway: for clients that connect with TLS, and for upstreams that want one.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use serde_json::json;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::rig::{self, Gateway, Got, Upstream, client, messages, request, send};

struct Made {
    certificate: CertificateDer<'static>,
    key: KeyPair,
    authority: CertificateDer<'static>,
    pem: String,
}

impl Made {
    /// A certificate for `localhost` that ends after a time.
    fn new(life: Duration) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        params.not_after = date_time_ymd(1970, 1, 1) + now + life;
        let made = params.signed_by(&key, &authority).unwrap();
        let authority = CertificateDer::from(authority.der().to_vec());
        Self { certificate: made.der().clone(), key, authority, pem: made.pem() }
    }

    fn files(&self) -> [String; 2] {
        [rig::file(&self.pem), rig::file(&self.key.serialize_pem())]
    }

    fn trusted(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.clone()).unwrap();
        roots
    }
}

const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

fn start(files: &[String; 2]) -> Gateway {
    let [certificate, key] = files;
    let flags = ["--tls-certificate", certificate, "--tls-key", key];
    Gateway::start_with(&[&flags[..], &["--upstream", "http://127.0.0.1:1"]].concat(), "", &[])
}

async fn connect(gateway: &Gateway, made: &Made, protocols: &[&str]) -> TlsStream<TcpStream> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(made.trusted())
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let stream = TcpStream::connect(gateway.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    rig::soon("TLS", TlsConnector::from(Arc::new(config)).connect(name, stream)).await.unwrap()
}

async fn healthy(stream: TlsStream<TcpStream>) -> Got {
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let sent = Request::get("https://localhost/healthz").header("host", "localhost");
    let sent = sent.body(Full::<Bytes>::default()).unwrap();
    let stream = TokioIo::new(stream);
    let response = if is_http2 {
        let (mut sender, connection) =
            http2::handshake(TokioExecutor::new(), stream).await.unwrap();
        tokio::spawn(connection);
        sender.send_request(sent).await
    } else {
        let (mut sender, connection) = http1::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        sender.send_request(sent).await
    };
    rig::read(response.unwrap()).await
}

#[tokio::test]
async fn clients_choose_the_protocol_and_a_new_certificate_is_taken() {
    let made = Made::new(YEAR);
    let files = made.files();
    let gateway = start(&files);
    for (protocols, chosen) in
        [(&["h2", "http/1.1"][..], Some("h2")), (&["http/1.1"], Some("http/1.1")), (&[], None)]
    {
        let stream = connect(&gateway, &made, protocols).await;
        assert_eq!(stream.get_ref().1.alpn_protocol(), chosen.map(str::as_bytes));
        assert_eq!(healthy(stream).await.status, 200, "{chosen:?}");
    }
    let served = async |made: &Made, expected: &Made| {
        let stream = connect(&gateway, made, &[]).await;
        let served = stream.get_ref().1.peer_certificates().unwrap()[0].clone();
        served == expected.certificate
    };
    // Broken files change nothing.
    std::fs::write(&files[0], "no certificate").unwrap();
    tokio::time::sleep(Duration::from_millis(2100)).await;
    assert!(served(&made, &made).await);
    let kept = "the certificate before is kept";
    rig::until("the line", || !gateway.lines(kept).is_empty()).await;
    let other = Made::new(Duration::from_secs(90 * 60));
    std::fs::write(&files[0], &other.pem).unwrap();
    std::fs::write(&files[1], other.key.serialize_pem()).unwrap();
    tokio::time::sleep(Duration::from_millis(2100)).await;
    assert!(served(&other, &other).await);
    rig::until("the warning", || {
        !gateway.lines("the certificate expires in 8").is_empty()
            && !gateway.lines("read again").is_empty()
    })
    .await;
}

#[test]
fn files_without_a_certificate_and_its_key_prevent_the_start() {
    let [certificate, key] = Made::new(YEAR).files();
    let [_, other] = Made::new(YEAR).files();
    for (certificate, key, told) in [
        (&key, &key, "no certificate in PEM"),
        (&certificate, &other, "not the key of"),
        (&certificate, &certificate, "no items found"),
        (&"/not/there".to_owned(), &key, "/not/there"),
    ] {
        let mut serve = std::process::Command::new(env!("CARGO_BIN_EXE_creole"));
        serve.args(["serve", "--no-check", "--listen", "127.0.0.1:0"]);
        serve.args(["--upstream", "http://127.0.0.1:1", "--tls-certificate", certificate]);
        let output = serve.args(["--tls-key", key]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("--tls-certificate, --tls-key: ") && text.contains(told), "{text}");
    }
}

#[tokio::test]
async fn an_upstream_gets_the_certificate_of_its_configuration_alone() {
    let (server, made) = (Made::new(YEAR), Made::new(YEAR));
    let verifier = WebPkiClientVerifier::builder_with_provider(
        made.trusted().into(),
        default_provider().into(),
    );
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(
            vec![server.certificate.clone()],
            PrivateKeyDer::try_from(server.key.serialize_der()).unwrap(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let upstream = Upstream::start_with_tls(acceptor, |_, mut out| {
        tokio::spawn(async move { out.send_data(Bytes::from(rig::COMPLETION)).await });
        (200, "application/json")
    })
    .await;
    let port = upstream.address.port();
    let pem = {
        use base64::Engine as _;
        let text = base64::engine::general_purpose::STANDARD.encode(&server.authority);
        format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
    };
    let authority = rig::file(&pem);
    let [certificate, key] = made.files();
    for (files, status) in
        [(json!({"certificate": certificate, "key": key}), 200), (json!({}), 502)]
    {
        let url = format!("https://localhost:{port}/v1");
        let upstreams = json!({"default": {"url": url, "client_certificate": files}});
        let config = json!({"upstreams": upstreams}).to_string();
        let gateway = Gateway::start_with(&[], &config, &[("SSL_CERT_FILE", &*authority)]);
        for path in ["/v1/messages", "/v1/x"] {
            let sent = request("POST", &gateway.url(path), messages(false));
            assert_eq!(send(&client(false), sent).await.status, status, "{path}");
        }
    }
}
