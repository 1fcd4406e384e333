//! A client small enough to see every byte.
#![allow(clippy::unwrap_used, unreachable_pub, reason = "a test fails by panicking")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use creole_demo::Demo;

/// Speaks HTTP/1.0, so that the body ends with the connection. Gives status, head and body.
pub fn send(demo: &Demo, method: &str, path: &str, body: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(demo.address()).unwrap();
    let length = body.len();
    write!(stream, "{method} {path} HTTP/1.0\r\nauthorization: Bearer secret\r\ncontent-length: {length}\r\n\r\n{body}")
        .unwrap();
    let mut answer = Vec::new();
    // A connection that the server cuts ends in an error; what came before it is what counts.
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_owned(), body.to_owned())
}
