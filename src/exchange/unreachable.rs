//! Reasons why an upstream could not be reached, for the log and for the error to the client.

/// Reason why an upstream could not be reached, the same on every host. Clients read the reason, so
/// no reason contains an address; a text supplied by an embedder must not, either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// DNS failure: the upstream's name cannot be resolved.
    NoName,
    /// Connection refused: no server listens at the upstream's address.
    Refused,
    /// Timeout while connecting to the upstream.
    TimedOut,
    /// Network failure: no route to the upstream's host.
    NoHost,
    /// Network failure: no route to the upstream's network.
    NoNetwork,
    /// Connection closed or reset by the upstream before the head of its answer.
    Closed,
    /// Connection refused or lost: the host cannot tell which.
    RefusedOrLost,
    /// Reset of the HTTP stream by the upstream, without a reset of the connection.
    StreamRefused,
    /// Response head that arrived before the host had sent the whole request.
    TooEarly,
    /// Response head without a body from the upstream.
    NoBody,
    /// Protocol failure: the upstream's answer is not HTTP.
    NotHttp,
    /// Answer that is not HTTP, or a closed connection: the host cannot tell which.
    NotHttpOrClosed,
    /// Protocol failure: the upstream's answer is not TLS.
    NotTls,
    /// TLS handshake failure, for example without a common version or cipher.
    Handshake,
    /// Certificate of the upstream with an unknown issuer.
    UnknownIssuer,
    /// Certificate of the upstream that has expired.
    Expired,
    /// Certificate of the upstream that is for another name.
    OtherName,
    /// Certificate of the upstream that belongs to a certificate authority, not to a server.
    AuthorityAsServer,
    /// Certificate of the upstream that is invalid for another reason.
    BadCertificate,
    /// TLS failure without details from the host.
    NotTrusted,
    /// Connection to the upstream that the host's sandbox does not allow.
    NotAllowed,
    /// Missing connection to the proxy that the host uses, or no answer of the proxy in time.
    NoProxy,
    /// Refusal of the host's user name or password by the proxy.
    ProxyLogin,
    /// Refusal of the connection by the proxy, which may not reach the upstream either.
    ProxyRefused,
    /// Lack of file descriptors on the host.
    NoFiles,
    /// Limit of the platform on calls per request, such as the subrequests of a Cloudflare Worker.
    TooManyCalls,
    /// Missing connection, without further details.
    NotConnected,
    /// Reason in an embedder's own text.
    Other(String),
}

impl Unreachable {
    /// Returns true if a retry could reach the upstream. If false, the error tells clients not to
    /// retry, because SDKs and agents would retry in vain for minutes.
    pub(super) fn heals(&self) -> bool {
        !(self.is_of_url()
            || matches!(
                self,
                Self::UnknownIssuer
                    | Self::Expired
                    | Self::AuthorityAsServer
                    | Self::BadCertificate
                    | Self::ProxyLogin
                    | Self::TooManyCalls
            ))
    }

    /// Returns true if the configured URL is at fault: it names another server or the wrong scheme.
    pub(super) fn is_of_url(&self) -> bool {
        matches!(self, Self::NotHttp | Self::NotTls | Self::OtherName | Self::NotAllowed)
    }

    /// Returns the reason why the upstream could not be reached, as a text for the client.
    #[must_use]
    pub fn words(&self) -> &str {
        match self {
            Self::NoName => "its name could not be resolved",
            Self::Refused => "the connection was refused",
            Self::TimedOut => "the connection timed out",
            Self::NoHost => "its host is unreachable",
            Self::NoNetwork => "its network is unreachable",
            Self::Closed => "it closed the connection before it answered",
            Self::RefusedOrLost => "the connection was refused or lost",
            Self::StreamRefused => "it refused the request",
            Self::TooEarly => "it answered before it had the request",
            Self::NoBody => "its answer has no body",
            Self::NotHttp => "it does not speak HTTP (https:// instead of http://?)",
            Self::NotHttpOrClosed => "it does not speak HTTP, or closed the connection",
            Self::NotTls => "TLS: it does not speak TLS (http:// instead of https://?)",
            Self::Handshake => "TLS: the handshake failed",
            Self::UnknownIssuer => "TLS: the issuer of its certificate is unknown",
            Self::Expired => "TLS: its certificate has expired",
            Self::OtherName => "TLS: its certificate is for another name",
            Self::AuthorityAsServer => {
                "TLS: its certificate is one of an authority, not of a server"
            }
            Self::BadCertificate => "TLS: its certificate is not valid",
            Self::NotTrusted => "TLS: the connection is not trusted",
            Self::NotAllowed => "the component's host does not allow it",
            Self::NoProxy => "the proxy on the way to it cannot be reached, or does not answer",
            Self::ProxyLogin => "the proxy on the way to it wants another user or password (407)",
            Self::ProxyRefused => "the proxy on the way to it refused the connection",
            Self::NoFiles => "this host has no more file descriptors",
            Self::TooManyCalls => {
                "this request needs more calls than the platform allows for one (subrequests)"
            }
            Self::NotConnected => "no connection",
            Self::Other(words) => words,
        }
    }
}
