//! Upstreams behind a company's proxy.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::rig::{
    self, Gateway, Upstream, chunk, client, finish, image_messages, messages, request, send,
};
use crate::tls::tls;

/// `user:se@cret` as a header has it.
const LOGIN: &str = "Basic dXNlcjpzZUBjcmV0";

/// Action of a proxy on a request that has its user and password.
#[derive(Clone, Copy)]
enum Does {
    Connect(SocketAddr),
    Refuse,
    Close,
}

/// A proxy with a user and a password, and the heads of the requests that came.
struct Proxy {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    async fn start(does: Does) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let heard = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, does, Arc::clone(&heard)));
            }
        });
        Self { address, asked }
    }

    fn url(&self, login: &str) -> String {
        format!("http://{login}{}", self.address)
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(mut client: TcpStream, does: Does, heard: Arc<Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if client.read_buf(&mut head).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let text = String::from_utf8_lossy(&head).to_ascii_lowercase();
    heard.lock().unwrap().push(text.clone());
    let is_known = text.contains(&format!("proxy-authorization: {}", LOGIN.to_ascii_lowercase()));
    let refused = match does {
        _ if !is_known => "407 Proxy Authentication Required",
        Does::Refuse => "403 Forbidden",
        Does::Close => return,
        Does::Connect(upstream) => {
            let mut upstream = TcpStream::connect(upstream).await.unwrap();
            upstream.set_nodelay(true).unwrap();
            client.set_nodelay(true).unwrap();
            match text.starts_with("connect ") {
                true => client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap(),
                false => upstream.write_all(&head).await.unwrap(),
            }
            let _ = copy_bidirectional(&mut client, &mut upstream).await;
            return;
        }
    };
    let answer = format!("HTTP/1.1 {refused}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let _ = client.write_all(answer.as_bytes()).await;
}

#[tokio::test]
async fn streams_arrive_in_time_through_a_proxy_with_a_password() {
    let (acceptor, authority) = tls("up.example", &["http/1.1"]);
    let (outs, mut received) = tokio::sync::mpsc::unbounded_channel();
    let secure = Upstream::start_with_tls(acceptor, move |_, out| {
        outs.send(out).unwrap();
        (200, rig::EVENT_STREAM)
    })
    .await;
    let (plain, mut plain_outs) = Upstream::written().await;
    for (scheme, upstream, outs) in
        [("https", &secure, &mut received), ("http", &plain, &mut plain_outs)]
    {
        let proxy = Proxy::start(Does::Connect(upstream.address)).await;
        let url = format!("{scheme}://up.example/v1");
        let named = proxy.url("user:se%40cret@");
        let variable = format!("{scheme}_proxy");
        let env = [("SSL_CERT_FILE", &*authority), (&*variable, &*named)];
        let gateway = Gateway::start_with(&["--upstream", &url], "{}", &env);
        let http = client(false);
        let sent = http.request(request("POST", &gateway.url("/v1/messages"), messages(true)));
        let first = async {
            let mut out = outs.recv().await.unwrap();
            out.send_data(chunk("One")).await.unwrap();
            out
        };
        let (response, mut out) = rig::soon("the head", async { tokio::join!(sent, first) }).await;
        let (mut response, mut seen) = (response.unwrap(), String::new());
        rig::read_until(&mut response, &mut seen, "One").await;
        for text in ["Two", "Three"] {
            out.send_data(chunk(text)).await.unwrap();
            rig::read_until(&mut response, &mut seen, text).await;
        }
        out.send_data(finish()).await.unwrap();
        drop(out);
        assert!(rig::read(response).await.body.contains("message_stop"));
        let asked = proxy.asked();
        let start = if scheme == "https" {
            "connect up.example:443 http/1.1\r\n"
        } else {
            "post http://up.example/v1/chat/completions http/1.1\r\n"
        };
        assert!(asked.len() == 1 && asked[0].starts_with(start), "{asked:?}");
        let headers = upstream.last().headers;
        // A plain proxy would take the header away; this one shows what it was sent.
        assert_eq!(headers.contains_key("proxy-authorization"), scheme == "http");
        let told = format!("upstream default: {url}, through http://{}", proxy.address);
        rig::until("the line", || !gateway.lines(&told).is_empty()).await;
        assert!(!gateway.log().contains("cret"), "{}", gateway.log());
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_proxy_is_told_without_its_password() {
    let nobody: SocketAddr =
        rig::nobody().await.trim_start_matches("http://").trim_end_matches("/v1").parse().unwrap();
    let refuses = Proxy::start(Does::Refuse).await;
    let closes = Proxy::start(Does::Close).await;
    let good = "user:se%40cret@";
    for (scheme, proxy, reason) in [
        ("https", refuses.url("user:other-cret@"), "wants another user or password (407)"),
        ("http", refuses.url("user:other-cret@"), "wants another user or password (407)"),
        ("https", refuses.url(""), "wants another user or password (407)"),
        ("https", refuses.url(good), "the proxy on the way to it refused the connection"),
        ("https", closes.url(good), "the proxy on the way to it cannot be reached"),
        ("https", format!("http://{good}{nobody}"), "the proxy on the way to it cannot be reached"),
        ("http", format!("http://{good}{nobody}"), "the proxy on the way to it cannot be reached"),
    ] {
        let url = format!("{scheme}://up.example/v1");
        let gateway = Gateway::start_with(&["--upstream", &url], "{}", &[("ALL_PROXY", &*proxy)]);
        for path in ["/v1/messages", "/v1/x"] {
            let sent = request("POST", &gateway.url(path), messages(false));
            let got = send(&client(false), sent).await;
            got.assert_error(502, "api_error", reason);
            assert!(!got.body.contains("up.example") && !got.body.contains("cret"), "{got:?}");
        }
        rig::until("the line", || !gateway.lines("could not be reached").is_empty()).await;
        assert!(!gateway.log().contains("cret"), "{}", gateway.log());
    }
}

#[tokio::test]
async fn an_upstream_of_this_machine_and_of_no_proxy_is_asked_directly() {
    let upstream = Upstream::answering(200, "application/json", rig::COMPLETION).await;
    let proxy = Proxy::start(Does::Refuse).await;
    let env = [("HTTP_PROXY", &*proxy.url("")), ("NO_PROXY", "up.example")];
    let gateway = Gateway::start_with(&["--upstream", &upstream.url()], "{}", &env);
    let sent = request("POST", &gateway.url("/v1/messages"), messages(false));
    assert_eq!(send(&client(false), sent).await.status, 200);
    let gateway = Gateway::start_with(&["--upstream", "http://up.example/v1"], "{}", &env);
    let sent = request("POST", &gateway.url("/v1/messages"), messages(false));
    let got = send(&client(false), sent).await;
    got.assert_error(502, "api_error", "its name could not be resolved");
    assert_eq!(proxy.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn what_clients_name_goes_through_the_proxy_only_where_that_is_said() {
    let upstream = Upstream::answering(200, "application/json", rig::COMPLETION).await;
    let config = r#"{"fetch_images": {"hosts": ["images.example"]},
        "upstreams": {"default": {"profile_overrides": {"image_parts": "data"}}}}"#;
    let proxy = Proxy::start(Does::Refuse).await;
    let named = proxy.url("user:se%40cret@");
    let ask = async |flags: &[&str], host: &str| {
        let url = upstream.url();
        let args = [&["--upstream", &*url], flags].concat();
        let gateway = Gateway::start_with(&args, config, &[("ALL_PROXY", &*named)]);
        let body = image_messages(&[format!("https://{host}/a.png")], false);
        let sent = request("POST", &gateway.url("/v1/messages"), body);
        let got = send(&client(false), sent).await;
        assert_eq!(got.status, 400, "{got:?}");
        gateway
    };
    ask(&[], "images.example").await;
    assert_eq!(proxy.asked(), Vec::<String>::new());
    let gateway = ask(&["--proxy-fetches"], "images.example").await;
    assert!(proxy.asked()[0].starts_with("connect images.example:443 "), "{:?}", proxy.asked());
    rig::until("the line", || !gateway.lines("must keep them out of private").is_empty()).await;
    assert_eq!(proxy.asked().len(), 1, "{:?}", proxy.asked());
}

#[test]
fn a_proxy_that_cannot_be_used_or_is_the_gateway_prevents_the_start() {
    for (variable, value, args, told) in [
        ("HTTPS_PROXY", "socks5://u:cret@p:1", &[][..], "HTTPS_PROXY: SOCKS is not supported"),
        ("http_proxy", "ftp://u:cret@p", &[], "http_proxy: expected the URL of a proxy"),
        (
            "ALL_PROXY",
            "http://u:cret@127.0.0.1:28931",
            &["--listen", "127.0.0.1:28931"],
            "HTTPS_PROXY, HTTP_PROXY: the proxy is the gateway itself",
        ),
        ("X", "", &["--proxy-fetches"], "--proxy-fetches: no proxy is named"),
    ] {
        let mut serve = Command::new(env!("CARGO_BIN_EXE_creole"));
        serve.args(["serve", "--no-check", "--upstream", "http://127.0.0.1:1/v1"]);
        let listen =
            if args.contains(&"--listen") { &[][..] } else { &["--listen", "127.0.0.1:0"] };
        let output = serve.args(listen).args(args).env(variable, value).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(told), "{text}");
        assert!(!text.contains("cret"), "{text}");
    }
}
