//! TLS towards clients, with a certificate that may change while the gateway runs.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;

use crate::CommandFailed;
use crate::server::door::Door;
use crate::upstream::tls_identity::Identity;

/// Protocols that clients may choose, the best first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Returns the TLS towards clients, if the flags name a certificate.
///
/// # Errors
/// The certificate or its key cannot be used.
pub(crate) fn of_clients(door: &Door) -> Result<Option<Arc<ServerConfig>>, CommandFailed> {
    let (Some(certificate), Some(key)) = (&door.tls_certificate, &door.tls_key) else {
        return Ok(None);
    };
    let identity = Identity::load(certificate, key).map_err(|reason| {
        CommandFailed::Usage(format!("--tls-certificate, --tls-key: {reason}"))
    })?;
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| CommandFailed::Run(format!("TLS: {error}")))?;
    let mut config = builder.with_no_client_auth().with_cert_resolver(identity);
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).into();
    Ok(Some(Arc::new(config)))
}
