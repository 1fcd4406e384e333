//! Request for a search, as the configured service takes it.

use std::borrow::Cow;

use super::domains::{listed, with_sites};
use super::services::{Part, ServiceRow};
use crate::config::{QUERY, SearchMethod, SearchRequest, WebSearchService};
use crate::headers::Header;
use crate::json::{Error, Reader, ValueKind, Writer};
use crate::model::search::SearchTool;
use crate::steps::ServiceQuestion;

/// Name of the service in logs.
const NAME: &str = "web_search";

/// Parameters of one search, from which its request is written.
struct SearchParams<'s> {
    service: &'s WebSearchService,
    tool: &'s SearchTool,
    query: &'s str,
    country: Option<String>,
}

/// Writes the request for a search for `query`.
pub(crate) fn request(
    service: &WebSearchService,
    tool: &SearchTool,
    query: &str,
) -> ServiceQuestion {
    let country = tool.location.as_ref().and_then(|location| location.country_code());
    let search = SearchParams { service, tool, query, country };
    let Some(row) = ServiceRow::of(service) else {
        return ServiceQuestion {
            name: NAME,
            url: String::new(),
            headers: Vec::new(),
            body: Vec::new(),
            message_id: None,
            is_public: false,
            cluster: String::new(),
        };
    };
    let path = search.filled(row.path, percent_encode);
    let mut url = Url::new(service.base_url(), &path);
    let mut body = Vec::new();
    if let Some(request) = &service.request {
        // The operator's parameters go into the body of a POST.
        let is_own = |name| row.method == SearchMethod::Post || !service.params.has(name);
        for (name, value) in request.query.iter().filter(|(name, _)| is_own(name)) {
            url.add(name, &search.filled(value, str::to_owned));
        }
    }
    match row.method {
        SearchMethod::Get => {
            for (name, value) in search.members(row.members) {
                match value {
                    Value::Text(text) => url.add(name, &text),
                    Value::Number(number) => url.add(name, &number.to_string()),
                    Value::Json(_) | Value::Domains(_) => {}
                }
            }
            service.params.iter().for_each(|(name, value)| url.add(name, value));
        }
        SearchMethod::Post => search.write_body(row.members, &mut Writer::new(&mut body)),
    }
    let headers = headers(service, row.key_header, row.method);
    ServiceQuestion {
        name: NAME,
        url: url.text,
        headers,
        body,
        message_id: None,
        is_public: false,
        cluster: service.cluster.clone(),
    }
}

fn headers(service: &WebSearchService, key_header: &str, method: SearchMethod) -> Vec<Header> {
    let mut headers: Vec<Header> = Vec::new();
    let mut add = |name: &str, value: String| headers.push((name.to_owned(), value));
    add("accept", "application/json".to_owned());
    // The answer must be readable without decompression.
    add("accept-encoding", "identity".to_owned());
    if method == SearchMethod::Post {
        add("content-type", "application/json".to_owned());
    }
    add("user-agent", concat!("creole/", env!("CARGO_PKG_VERSION")).to_owned());
    if let Some(key) = service.key.secret() {
        let token = key.strip_prefix("Bearer ").map_or(key, str::trim_start);
        let is_bearer = key_header == "authorization";
        add(key_header, if is_bearer { ["Bearer ", token].concat() } else { key.to_owned() });
    }
    headers
}

/// Value of a member of a request.
enum Value<'v> {
    Text(Cow<'v, str>),
    Number(u32),
    /// JSON text, which only bodies have.
    Json(&'static str),
    /// List of domains, which only bodies have.
    Domains(&'v [String]),
}

impl SearchParams<'_> {
    /// Returns the members of a row with their values, without those that the operator's parameters
    /// replace.
    fn members(
        &self,
        members: &'static [(&'static str, Part)],
    ) -> impl Iterator<Item = (&'static str, Value<'_>)> {
        let own = members.iter().filter(|(name, _)| !self.service.params.has(name));
        own.filter_map(|(name, part)| Some((*name, self.value(*part)?)))
    }

    fn value(&self, part: Part) -> Option<Value<'_>> {
        let country = self.country.as_deref();
        Some(match part {
            Part::Text(text) => Value::Text(text.into()),
            Part::Json(json) => Value::Json(json),
            Part::Query => Value::Text(self.query.into()),
            Part::QueryWithSites => Value::Text(with_sites(self.query, self.tool).into()),
            Part::Count(most) => Value::Number(self.service.results_max.min(most)),
            Part::Country => Value::Text(country?.into()),
            Part::LowerCountry => Value::Text(country?.to_ascii_lowercase().into()),
            Part::Allowed if !self.tool.allowed_domains.is_empty() => {
                Value::Domains(&self.tool.allowed_domains)
            }
            Part::Blocked if !self.tool.blocked_domains.is_empty() => {
                Value::Domains(&self.tool.blocked_domains)
            }
            Part::Allowed | Part::Blocked => return None,
        })
    }

    fn write_body(&self, members: &'static [(&'static str, Part)], json: &mut Writer<'_>) {
        json.begin_object();
        for (name, value) in self.members(members) {
            json.key(name);
            match value {
                Value::Text(text) => json.text(&text),
                Value::Number(number) => json.u64(number.into()),
                Value::Json(raw) => json.raw(raw),
                Value::Domains(domains) => {
                    json.begin_array();
                    for domain in listed(domains) {
                        json.text(domain);
                    }
                    json.end_array()
                }
            };
        }
        if let Some(request) = &self.service.request {
            self.write_own_members(request, json);
        }
        for (name, value) in self.service.params.iter() {
            json.key_text(name).text(value);
        }
        json.end_object();
    }

    /// Writes the members of the body that the configuration has for a service of kind `json`.
    fn write_own_members(&self, request: &SearchRequest, json: &mut Writer<'_>) {
        for name in request.body.names().filter(|name| !self.service.params.has(name)) {
            let Some(value) = request.body.get(name) else { continue };
            json.key_text(name);
            // The value was read with the configuration, so it is valid JSON.
            let _ = self.write_filled(&mut Reader::of(value), json);
        }
    }

    /// Copies the next JSON value, with the placeholders in its strings replaced.
    fn write_filled(&self, reader: &mut Reader<'_>, json: &mut Writer<'_>) -> Result<(), Error> {
        match reader.kind()? {
            ValueKind::String => {
                json.text(&self.filled(&reader.string()?.decode(), str::to_owned));
            }
            ValueKind::Array => {
                reader.begin_array()?;
                json.begin_array();
                while reader.next_element()? {
                    self.write_filled(reader, json)?;
                }
                json.end_array();
            }
            ValueKind::Object => {
                reader.begin_object()?;
                json.begin_object();
                while let Some(key) = reader.next_key()? {
                    json.key_str(key);
                    self.write_filled(reader, json)?;
                }
                json.end_object();
            }
            ValueKind::Number | ValueKind::Bool | ValueKind::Null => {
                json.raw(reader.skip()?);
            }
        }
        Ok(())
    }

    /// Returns a text of the configuration with its placeholders replaced by their values, each as
    /// `written` changes it. Placeholders in the values stay text.
    fn filled(&self, text: &str, written: impl Fn(&str) -> String) -> String {
        let count = self.service.results_max.to_string();
        let values = [
            (QUERY, self.query),
            ("{count}", count.as_str()),
            ("{country}", self.country.as_deref().unwrap_or_default()),
        ];
        let (mut out, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.find('{').and_then(|at| rest.split_at_checked(at)) {
            let found = values.iter().find_map(|(name, value)| {
                after.strip_prefix(name).map(|after| (after, written(value)))
            });
            let bracket = || (after.strip_prefix('{').unwrap_or_default(), "{".to_owned());
            let (next, value) = found.unwrap_or_else(bracket);
            out.push_str(before);
            out.push_str(&value);
            rest = next;
        }
        out + rest
    }
}

/// URL of a request, to which parameters are added.
struct Url {
    text: String,
    separator: char,
}

impl Url {
    /// Puts a path behind the path of the base URL, and before its query. Operators often copy the
    /// path of searches together with the base URL, so it is not repeated.
    fn new(base: &str, path: &str) -> Self {
        let (base, query) = base.split_once('?').unwrap_or((base, ""));
        let base = base.trim_end_matches('/');
        // A host can have the name of the path: `http://search`.
        let without = base.strip_suffix(path).filter(|base| !base.ends_with('/'));
        let base = without.unwrap_or(base);
        let mut text = [base, path].concat();
        if query.is_empty() {
            return Self { text, separator: '?' };
        }
        text.push('?');
        text.push_str(query);
        Self { text, separator: '&' }
    }

    fn add(&mut self, name: &str, value: &str) {
        self.text.push(self.separator);
        self.separator = '&';
        self.text.push_str(&percent_encode(name));
        self.text.push('=');
        self.text.push_str(&percent_encode(value));
    }
}

/// Returns a text in which all bytes but letters, digits and `-._~` are percent-encoded.
fn percent_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
