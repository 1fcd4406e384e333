//! Why an upstream could not be reached.

/// The reasons, the same on every host. None has an address in it, because clients read them; an embedder's own words
/// must not, either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// DNS does not know it.
    NoName,
    /// Nobody listens.
    Refused,
    /// Nobody answered in time.
    TimedOut,
    /// There is no way to its host.
    NoHost,
    /// There is no way to its network.
    NoNetwork,
    /// It hung up before its head, or reset the connection.
    Closed,
    /// One of the two: the host cannot tell.
    RefusedOrLost,
    /// It reset the stream alone.
    StreamRefused,
    /// It sent a head before the host had all of the request.
    TooEarly,
    /// Its head came, and no body.
    NoBody,
    /// What it speaks is something else.
    NotHttp,
    /// One of the two: the host cannot tell.
    NotHttpOrClosed,
    /// What it speaks is no TLS.
    NotTls,
    /// TLS found no common ground.
    Handshake,
    /// Nobody knows who signed its certificate.
    UnknownIssuer,
    /// Its certificate is too old.
    Expired,
    /// Its certificate is that of another server.
    OtherName,
    /// Its certificate says that it is one of an authority, which signs others.
    AuthorityAsServer,
    /// Its certificate is wrong in another way.
    BadCertificate,
    /// TLS failed: the host cannot tell how.
    NotTrusted,
    /// The host may not open connections there.
    NotAllowed,
    /// The host has no more file descriptors.
    NoFiles,
    /// The platform allows no more calls for one request: a Worker's subrequests.
    TooManyCalls,
    /// Nothing more is known.
    NotConnected,
    /// In an embedder's own words.
    Other(String),
}

impl Unreachable {
    /// Whether another request could reach it. SDKs and agents would ask for minutes.
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

    /// Whether the configuration names another server, or the wrong scheme.
    pub(super) fn is_of_url(&self) -> bool {
        matches!(self, Self::NotHttp | Self::NotTls | Self::OtherName | Self::NotAllowed)
    }

    /// What the client is told.
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
