//! A whole host, which streams: a thread for each request, and one upstream without TLS.
//!
//! ```sh
//! UPSTREAM_URL=http://127.0.0.1:11434/v1 cargo run --example host
//! ```

use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use creole::{Call, Config, End, Exchange, Failure, Header, HostCan, RequestHead, To, Unreachable};

fn main() -> Result<(), String> {
    let config = Arc::new(Config::from_variables(|name| std::env::var(name).ok())?);
    let listener = TcpListener::bind("127.0.0.1:8787").map_err(|error| error.to_string())?;
    for client in listener.incoming().flatten() {
        let config = Arc::clone(&config);
        std::thread::spawn(move || serve(&config, client));
    }
    Ok(())
}

/// Serves one request. The connection ends with the answer.
pub(crate) fn serve(config: &Arc<Config>, mut client: TcpStream) -> io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let (line, headers) = read_head(&mut reader)?;
    let (method, rest) = line.split_once(' ').unwrap_or_default();
    let path = rest.split(' ').next().unwrap_or_default();
    let random = RandomState::new();
    let seed = u128::from(random.hash_one(0)) << 64 | u128::from(random.hash_one(1));
    let mut exchange = Exchange::new(Arc::clone(config), seed, HostCan::default());
    match exchange.handle_request_head(method, path, &headers) {
        RequestHead::PassThrough => return write!(client, "HTTP/1.1 404 Not Found\r\n\r\n"),
        RequestHead::Answered => {}
        RequestHead::Translate => {
            let length = headers.iter().find(|(name, _)| name == "content-length");
            let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or_default();
            let mut body = Vec::new();
            reader.take(length).read_to_end(&mut body)?;
            exchange.handle_request_body(body, now());
        }
    }
    while let Some(call) = exchange.poll_call(now()) {
        let id = call.id;
        if ask(&mut exchange, call, &mut client).is_err() {
            let failure = Failure::Unreachable(Unreachable::NotConnected);
            exchange.handle_call_failure(id, failure, now());
        }
    }
    send(&mut exchange, &mut client)
}

/// Sends a call to its upstream, and passes what comes to the client at once.
fn ask(exchange: &mut Exchange, call: Call, client: &mut TcpStream) -> io::Result<()> {
    let Call { id, to, path, headers, body } = call;
    let url = match &to {
        To::Upstream(name) => exchange.config().upstreams.get(name).map(|known| &known.url),
        _ => None,
    };
    let host = url.and_then(|url| url.strip_prefix("http://")).unwrap_or_default().to_owned();
    let mut upstream = TcpStream::connect(&host)?;
    upstream.set_read_timeout(Some(Duration::from_millis(timeout(exchange))))?;
    // An answer of HTTP/1.0 ends with its connection, and has no chunks.
    let length = body.len();
    write!(upstream, "POST {path} HTTP/1.0\r\nhost: {host}\r\ncontent-length: {length}\r\n")?;
    headers.iter().try_for_each(|(name, value)| write!(upstream, "{name}: {value}\r\n"))?;
    upstream.write_all(&[b"\r\n", &*body].concat())?;
    let mut reader = BufReader::new(upstream.try_clone()?);
    let (line, headers) = read_head(&mut reader)?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    exchange.handle_call_head(id, status.unwrap_or(502), &headers, now());
    let mut piece = [0; 16 << 10];
    while !exchange.is_ended() {
        upstream.set_read_timeout(Some(Duration::from_millis(timeout(exchange))))?;
        match reader.read(&mut piece) {
            Ok(0) => exchange.handle_call_end(id, End::Complete, now()),
            Ok(count) => {
                exchange.handle_call_body(id, piece.get(..count).unwrap_or_default(), now())
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                exchange.handle_timeout(now());
            }
            Err(_) => exchange.handle_call_end(id, End::Aborted, now()),
        }
        send(exchange, client)?;
    }
    Ok(())
}

/// Returns the milliseconds until the exchange wants to be called.
fn timeout(exchange: &Exchange) -> u64 {
    exchange.poll_timeout().map_or(60_000, |until| until.saturating_sub(now()).max(1))
}

/// Sends what is due to the client.
fn send(exchange: &mut Exchange, client: &mut TcpStream) -> io::Result<()> {
    if let Some(head) = exchange.poll_head() {
        write!(client, "HTTP/1.1 {} Creole\r\nconnection: close\r\n", head.status)?;
        head.headers.iter().try_for_each(|(name, value)| write!(client, "{name}: {value}\r\n"))?;
        client.write_all(b"\r\n")?;
    }
    let mut body = Vec::new();
    exchange.poll_body(&mut body);
    client.write_all(&body)
}

/// Reads the first line and the headers of a request or a response.
fn read_head(reader: &mut impl BufRead) -> io::Result<(String, Vec<Header>)> {
    let mut lines = reader.lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let mut headers = Vec::new();
    for line in lines {
        let line = line?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    Ok((first, headers))
}

/// Returns the milliseconds since the Unix epoch.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
