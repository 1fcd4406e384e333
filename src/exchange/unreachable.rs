//! Reasons why an upstream could not be reached.

/// Reason why an upstream could not be reached, the same on every host. No reason has an address in
/// it, because clients read it; an embedder's own words must not, either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// DNS does not know the upstream's name.
    NoName,
    /// Nobody listens at the upstream's address.
    Refused,
    /// Nobody answered in time.
    TimedOut,
    /// There is no way to the upstream's host.
    NoHost,
    /// There is no way to the upstream's network.
    NoNetwork,
    /// The upstream hung up before its head, or reset the connection.
    Closed,
    /// The connection was refused or lost: the host cannot tell which.
    RefusedOrLost,
    /// The upstream reset the stream, and not the connection.
    StreamRefused,
    /// The upstream sent a head before the host had all of the request.
    TooEarly,
    /// The upstream sent a head, and no body.
    NoBody,
    /// The upstream speaks something else than HTTP.
    NotHttp,
    /// The upstream does not speak HTTP, or hung up: the host cannot tell which.
    NotHttpOrClosed,
    /// The upstream speaks something else than TLS.
    NotTls,
    /// TLS found no common ground.
    Handshake,
    /// Nobody knows who signed the upstream's certificate.
    UnknownIssuer,
    /// The upstream's certificate has expired.
    Expired,
    /// The upstream's certificate is for another name.
    OtherName,
    /// The upstream's certificate is that of an authority, which signs others, and not of a server.
    AuthorityAsServer,
    /// The upstream's certificate is wrong in another way.
    BadCertificate,
    /// TLS failed: the host cannot tell how.
    NotTrusted,
    /// The host may not open connections to the upstream.
    NotAllowed,
    /// The host has no more file descriptors.
    NoFiles,
    /// The platform allows no more calls for one request: a Worker's subrequests.
    TooManyCalls,
    /// There is no connection, and nothing more is known.
    NotConnected,
    /// Another reason, in an embedder's own words.
    Other(String),
}

impl Unreachable {
    /// Returns true if another request could reach the upstream. If not, SDKs and agents would ask
    /// in vain for minutes.
    pub(super) fn heals(&self) -> bool {
        !(self.is_of_url()
            || matches!(
                self,
                Self::UnknownIssuer
                    | Self::Expired
                    | Self::AuthorityAsServer
                    | Self::BadCertificate
                    | Self::TooManyCalls
            ))
    }

    /// Returns true if the fault is in the configuration's URL: it names another server, or the
    /// wrong scheme.
    pub(super) fn is_of_url(&self) -> bool {
        matches!(self, Self::NotHttp | Self::NotTls | Self::OtherName | Self::NotAllowed)
    }

    /// Returns the reason in the words for the client.
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
            Self::NoFiles => "this host has no more file descriptors",
            Self::TooManyCalls => {
                "this request needs more calls than the platform allows for one (subrequests)"
            }
            Self::NotConnected => "no connection",
            Self::Other(words) => words,
        }
    }
}
