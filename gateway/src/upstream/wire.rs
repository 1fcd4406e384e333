//! Streams to servers, whatever is between.

use std::error::Error;
use std::fmt;

use hyper::rt::{Read, Write};
use hyper_util::client::legacy::connect::Connection;

/// Stream to a server: a socket, or TLS in it, or TLS in a tunnel.
pub(super) trait Wire: Read + Write + Connection + fmt::Debug + Unpin + Send {}

impl<T: Read + Write + Connection + fmt::Debug + Unpin + Send> Wire for T {}

/// Reason for which there is no stream.
pub(super) type ConnectError = Box<dyn Error + Send + Sync>;
