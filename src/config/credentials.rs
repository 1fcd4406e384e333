//! Credentials of upstreams, and headers that the operator adds to requests to upstreams.

use std::fmt;

use crate::json::{Error, Reader, ValueKind, Writer, quoted};
use crate::setting::{Keys, Named, Setting, ValueType, keys};

/// Maximum length of a credential, in bytes. Entra tokens with groups have more than 8 KiB; servers
/// that accept them allow heads of 32 KiB or more.
pub const CREDENTIAL_BYTES_MAX: usize = 32 << 10;

/// Names of headers that Creole or its host sets. An operator's value would make the request
/// unreadable or misroute it.
const RESERVED: [&str; 14] = [
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-api-key",
];

/// Prefixes of headers that Creole, Envoy and other proxies use among each other.
const RESERVED_PREFIXES: [&str; 4] = ["x-creole-", "x-envoy-", "proxy-", "keep-"];

fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name) || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns true if a text can be the name of a header (RFC 9110, 5.6.2).
fn is_token(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_letter)
}

/// Credential that is sent to an upstream.
#[derive(Clone, PartialEq, Eq)]
pub enum Key {
    /// Credential that the client sent.
    Client,
    /// Credential of the operator.
    Secret(String),
    /// No credential, for a server without keys, although clients of the gateway may have keys.
    None,
}

impl Key {
    /// Returns true if the operator chose the credential, so that the client's credential is not
    /// sent.
    #[must_use]
    pub fn is_own(&self) -> bool {
        !matches!(self, Self::Client)
    }

    pub(super) fn own(key: String) -> Result<Self, String> {
        check_credential(key.trim())?;
        Ok(Self::Secret(key))
    }
}

/// Prints the kind of credential and never its value, because configurations are printed.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Client => "Client",
            Self::Secret(_) => "Secret(…)",
            Self::None => "None",
        })
    }
}

/// Header that the operator adds to requests to an upstream.
#[derive(Clone, PartialEq, Eq)]
pub struct UpstreamHeader {
    /// Name of the header, in lower case.
    pub name: String,
    /// Value of the header, without surrounding white space.
    pub value: String,
    /// True if the value is a secret of the host, which must not be shown.
    pub is_secret: bool,
}

/// Prints the header's name and never its value, because configurations are printed.
impl fmt::Debug for UpstreamHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: …", self.name)
    }
}

keys! {
    /// An environment variable, a secret of a Worker, or a file, as a document names it.
    pub(super) SecretDocument {
        /// Name of the environment variable, or of the Worker's secret, that holds the credential.
        env: Option<String> = None;
        /// Former name of `env`.
        secret: Option<String> = None;
        /// Absolute path of the file that holds the credential, for the gateway, which reads the
        /// file again when it changes.
        file: Option<String> = None;
    }
}

impl SecretDocument {
    /// Returns the place of the credential.
    fn place(&self) -> SecretPlace<'_> {
        let [env, former, file] = [&self.env, &self.secret, &self.file].map(Option::as_deref);
        SecretPlace::of(env, former, file)
    }
}

/// Place of a credential: the member of the document that names the place, and the name there.
#[derive(Clone, Copy, Debug)]
pub(super) struct SecretPlace<'d> {
    pub(super) member: &'static str,
    pub(super) name: &'d str,
    /// True if the object names one place alone.
    is_only: bool,
}

impl<'d> SecretPlace<'d> {
    /// Returns the place that the members `env`, `secret` and `file` of an object name.
    pub(super) fn of(env: Option<&'d str>, former: Option<&'d str>, file: Option<&'d str>) -> Self {
        let (member, name) = match (env, former, file) {
            (_, _, Some(path)) => ("file", path),
            (None, Some(name), None) => ("secret", name),
            (name, _, None) => ("env", name.unwrap_or_default()),
        };
        Self { member, name, is_only: file.is_none() || env.or(former).is_none() }
    }

    /// Reads the credential from the host.
    ///
    /// # Errors
    /// The member of the document that is wrong, and the reason.
    pub(super) fn read(&self, secrets: &Secrets<'_>) -> Result<String, (&'static str, String)> {
        let read = match self.member {
            _ if !self.is_only => Err("expected a file or a variable, but found both".to_owned()),
            "file" => in_file(self.name, secrets),
            _ => secret_of(self.name, secrets.variable),
        };
        read.map_err(|reason| (self.member, reason))
    }
}

/// Places of a host in which credentials are: its variables, and its files.
#[derive(Clone, Copy)]
pub struct Secrets<'h> {
    /// Function that returns the value of an environment variable or of a Worker's secret.
    pub variable: &'h dyn Fn(&str) -> Option<String>,
    /// Function that returns the text of the file at an absolute path, or the reason for which it
    /// cannot be read.
    pub file: &'h dyn Fn(&str) -> Result<String, String>,
}

impl<'h> Secrets<'h> {
    /// Returns the places of a host that reads no files.
    pub fn of_variables(variable: &'h dyn Fn(&str) -> Option<String>) -> Self {
        let file =
            &|_: &str| Err("this host reads no files, so expected {\"env\": NAME}".to_owned());
        Self { variable, file }
    }
}

/// Prints no credential, because configurations are printed.
impl fmt::Debug for Secrets<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(…)")
    }
}

/// Returns the credential in a file of the host.
fn in_file(path: &str, secrets: &Secrets<'_>) -> Result<String, String> {
    let is_absolute =
        path.starts_with(['/', '\\']) || path.get(1..3).is_some_and(|it| it == ":\\" || it == ":/");
    if !is_absolute {
        // The error does not quote the path, because it may be the key itself.
        let reason = "expected the absolute path of a file; a key itself is never written here";
        return Err(reason.to_owned());
    }
    let text = (secrets.file)(path)?;
    match text.trim() {
        "" => Err(format!("expected a key in {path}, but the file is empty")),
        key => Ok(key.to_owned()),
    }
}

/// Object in the document that names a secret, and must not contain the secret itself.
///
/// Errors about the object quote no value, because an operator who wrote the key itself must not
/// find it in a log.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Unquoted<T>(pub(super) T);

impl<T: Keys> Setting for Unquoted<T> {
    const TYPE: ValueType = ValueType::Secret(T::FIELDS);

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let expected =
            "expected {\"env\": NAME} or {\"file\": PATH}; a key itself is never written here";
        T::read(reader).map(Self).map_err(|error| unquoted(error, expected))
    }
}

fn unquoted(error: Error, expected: &str) -> Error {
    if error.is_syntax() { error } else { Error::value(expected) }
}

/// Credential of an upstream, as written in the document.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum KeyDocument {
    Client,
    None,
    Secret(SecretDocument),
}

impl Setting for KeyDocument {
    const TYPE: ValueType = ValueType::AnyOf(&[
        ValueType::Const("client"),
        ValueType::Const("none"),
        Unquoted::<SecretDocument>::TYPE,
    ]);

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        const EXPECTED: &str = "expected \"client\", \"none\", {\"env\": NAME} or {\"file\": PATH}, where NAME is an environment \
                                variable or a Worker's secret; a key itself is never written here";
        if reader.kind()? == ValueKind::String {
            return match &*reader.string()?.decode() {
                "client" => Ok(Self::Client),
                "none" => Ok(Self::None),
                _ => Err(Error::value(EXPECTED)),
            };
        }
        let read = SecretDocument::read(reader).map(Self::Secret);
        read.map_err(|error| unquoted(error, EXPECTED))
    }

    fn write(&self, json: &mut Writer<'_>) {
        match self {
            Self::Client => json.text("client"),
            Self::None => json.text("none"),
            Self::Secret(_) => return,
        };
    }
}

/// Credential of a service that Creole asks for a server tool.
#[derive(Clone, Default, PartialEq)]
pub struct ServiceKey {
    /// Variable that the document names, until the host is asked for its value.
    variable: Option<SecretDocument>,
    secret: Option<String>,
}

/// Form of a service's credential in the document.
pub(super) const SERVICE_KEY: ValueType = Unquoted::<SecretDocument>::TYPE;

impl ServiceKey {
    /// Returns the credential that a variable of the host holds.
    pub(super) fn of(variable: SecretDocument) -> Self {
        Self { variable: Some(variable), secret: None }
    }

    /// Returns the credential, without white space around it; `None` if the service gets none.
    #[must_use]
    pub fn secret(&self) -> Option<&str> {
        self.secret.as_deref().map(str::trim)
    }

    /// Reads the credential from the host, if the document names one.
    ///
    /// # Errors
    /// The wrong member of the document, and the reason.
    pub(super) fn resolve(&mut self, secrets: &Secrets<'_>) -> Result<(), (&'static str, String)> {
        let Some(document) = self.variable.take() else { return Ok(()) };
        if let Key::Secret(key) = key_of(KeyDocument::Secret(document), secrets)? {
            self.secret = Some(key);
        }
        Ok(())
    }
}

/// Prints the presence of a credential and never its value, because configurations are printed.
impl fmt::Debug for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.secret.is_some() { "Secret(…)" } else { "None" })
    }
}

impl Setting for ServiceKey {
    const TYPE: ValueType = Unquoted::<SecretDocument>::TYPE;

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let Unquoted(variable) = Unquoted::read(reader)?;
        Ok(Self::of(variable))
    }
}

/// Value of an upstream's header, as written in the document.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum HeaderDocument {
    Text(String),
    Secret(SecretDocument),
}

impl Setting for HeaderDocument {
    const TYPE: ValueType = ValueType::AnyOf(&[ValueType::Text, Unquoted::<SecretDocument>::TYPE]);

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        if reader.kind()? == ValueKind::String {
            return String::read(reader).map(Self::Text);
        }
        Unquoted::read(reader).map(|Unquoted(secret)| Self::Secret(secret))
    }
}

/// Returns the credential that a document describes, or the wrong member and the reason.
pub(super) fn key_of(
    document: KeyDocument,
    secrets: &Secrets<'_>,
) -> Result<Key, (&'static str, String)> {
    match document {
        KeyDocument::Client => Ok(Key::Client),
        KeyDocument::None => Ok(Key::None),
        KeyDocument::Secret(document) => {
            let place = document.place();
            Key::own(place.read(secrets)?).map_err(|reason| (place.member, reason))
        }
    }
}

/// Returns the headers that a document describes, or the name of a wrong header and the reason.
pub(super) fn own_headers(
    document: Option<Named<HeaderDocument>>,
    secrets: &Secrets<'_>,
) -> Result<Vec<UpstreamHeader>, (String, String)> {
    let mut headers: Vec<UpstreamHeader> = Vec::new();
    for (given, value) in document.map_or_else(Vec::new, |Named(headers)| headers) {
        let name = given.to_ascii_lowercase();
        let header = own_header(&name, value, secrets).and_then(|header| {
            match headers.iter().any(|known| known.name == name) {
                true => Err("expected each name once".to_owned()),
                false => Ok(header),
            }
        });
        headers.push(header.map_err(|reason| (given, reason))?);
    }
    Ok(headers)
}

/// Checks that the operator may set a header with this name, which is in lower case.
///
/// # Errors
/// The reason for which the header is not allowed.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    if !is_token(name) {
        return Err("expected the name of a header".to_owned());
    }
    if is_reserved(name) {
        return Err(match name {
            "authorization" | "x-api-key" => "expected another name (set key instead)",
            _ => "expected another name, because Creole sets this header itself",
        }
        .to_owned());
    }
    Ok(())
}

fn own_header(
    name: &str,
    value: HeaderDocument,
    secrets: &Secrets<'_>,
) -> Result<UpstreamHeader, String> {
    check_name(name)?;
    let (value, is_secret) = match value {
        HeaderDocument::Text(text) => (text, false),
        HeaderDocument::Secret(document) => {
            (document.place().read(secrets).map_err(|(_, reason)| reason)?, true)
        }
    };
    let value = value.trim();
    check_credential(value).map_err(|reason| reason.replace("a key ", "a value "))?;
    Ok(UpstreamHeader { name: name.to_owned(), value: value.to_owned(), is_secret })
}

/// Checks that a text can be sent as a credential in a header.
///
/// # Errors
/// The reason, which does not quote the credential.
pub(super) fn check_credential(text: &str) -> Result<(), String> {
    if text.len() > CREDENTIAL_BYTES_MAX {
        return Err(format!(
            "expected a key of at most {CREDENTIAL_BYTES_MAX} bytes, but found one of {}",
            text.len()
        ));
    }
    if text.is_empty() || !text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Err("expected a key in one line of visible ASCII characters".to_owned());
    }
    Ok(())
}

/// Returns the value of the variable with this name, or the reason for which there is none.
pub(super) fn secret_of(
    secret_name: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<String, String> {
    match variable(secret_name) {
        // An empty value is refused when it is checked as a credential, like a value of spaces
        // alone.
        Some(value) => Ok(value),
        _ if is_variable(secret_name) => {
            let name = quoted(secret_name);
            Err(format!("expected an environment variable called {name}, but found none"))
        }
        // The error does not quote the name, because it may be the key itself.
        _ => {
            let reason = "expected the name of an environment variable, but found none of that name; a key \
                          itself is never written here";
            Err(reason.to_owned())
        }
    }
}

/// Returns true if a text looks like the name of a variable (`OPENAI_API_KEY`), and so is probably
/// not a key.
#[must_use]
pub fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests;
