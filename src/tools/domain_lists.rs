//! Lists of domains in the definitions of `web_search` and `web_fetch`.

use crate::json::{self, Reader, quoted};
use crate::model::tool::SearchMembers;
use crate::text::domains::checked;
use crate::text::words;

/// Maximum number of entries in a list of domains. Each result is compared with each entry.
pub(super) const DOMAINS_MAX: usize = 1000;

/// Maximum number of bytes of a wrong entry that an error quotes.
const QUOTED_BYTES_MAX: usize = 200;

/// Domains that a tool may use: those of one list, or all but those of the other.
pub(super) struct DomainLists {
    pub(super) allowed: Vec<String>,
    pub(super) blocked: Vec<String>,
}

impl DomainLists {
    /// # Errors
    /// Both lists have entries, or an entry is no host. The path begins in the definition.
    pub(super) fn read(members: &SearchMembers<'_>) -> Result<Self, json::Error> {
        let list =
            |name: &str, array: Option<&str>| domains(array).map_err(|error| error.in_key(name));
        let allowed = list("allowed_domains", members.allowed_domains)?;
        let blocked = list("blocked_domains", members.blocked_domains)?;
        if !allowed.is_empty() && !blocked.is_empty() {
            let reason = "allowed_domains and blocked_domains cannot be used together";
            return Err(json::Error::value(reason));
        }
        Ok(Self { allowed, blocked })
    }
}

fn domains(array: Option<&str>) -> Result<Vec<String>, json::Error> {
    let mut domains = Vec::new();
    let Some(array) = array.filter(|array| *array != "null") else { return Ok(domains) };
    let mut reader = Reader::new(array, 2);
    reader.begin_array()?;
    while reader.next_element()? {
        if domains.len() >= DOMAINS_MAX {
            return Err(json::Error::value(format!("expected at most {DOMAINS_MAX} domains")));
        }
        let at = |error: json::Error| error.at_index(domains.len());
        let domain = reader.string().map_err(at)?.decode();
        let Some(domain) = checked(&domain) else {
            let found = quoted(words::beginning(&domain, QUOTED_BYTES_MAX));
            let reason = format!("expected a host without scheme, but found {found}");
            return Err(at(json::Error::value(reason)));
        };
        domains.push(domain);
    }
    Ok(domains)
}
