//! Images and files of a request that an upstream may refuse. Clients repeat them in every later
//! request.

use crate::json::Str;
use crate::model::request_context::Refusable;
use crate::model::{Block, DocumentBlock, DocumentSource, ImageSource, Message, Request, Role};
use crate::text::words;

/// Maximum number of image hosts that are looked for in an upstream's error.
const HOSTS_MAX: usize = 16;

/// Returns the images and files of a request that an upstream may refuse, although the profile says
/// that the upstream accepts them.
pub(crate) fn refusable(request: &Request<'_>, takes_images: bool, takes_files: bool) -> Refusable {
    let images = takes_images && has_block(request, is_image);
    Refusable {
        images,
        new_image: images && has_new(request, is_image),
        image_hosts: if images { image_hosts(request) } else { Vec::new() },
        documents: takes_files && has_block(request, is_file),
        new_document: takes_files && has_new(request, is_file),
        ..Refusable::default()
    }
}

/// Returns the files of a request other than those that the last message has beside tool results,
/// which the user has just sent.
pub(crate) fn old_files<'r, 'a>(
    request: &'r Request<'a>,
) -> impl Iterator<Item = &'r DocumentBlock<'a>> {
    let last = request.messages.len().saturating_sub(1);
    let messages = request.messages.iter().enumerate();
    let blocks = messages.flat_map(move |(at, message)| {
        let is_old = move |block: &&Block<'_>| at < last || matches!(block, Block::ToolResult(_));
        message.content.iter().filter(is_old)
    });
    let blocks = blocks.flat_map(|block| std::iter::once(block).chain(within(block)));
    blocks.filter_map(|block| match block {
        Block::Document(document) if is_file(block) => Some(&**document),
        _ => None,
    })
}

/// Returns true if the user's last message has a new block for which `is_it` holds. A message with
/// tool results has no new blocks: clients add images that came out of tools.
fn has_new(request: &Request<'_>, is_it: fn(&Block<'_>) -> bool) -> bool {
    let last = request.messages.iter().rfind(|message| message.role == Role::User);
    last.is_some_and(|message| {
        let is_result = |block: &Block<'_>| matches!(block, Block::ToolResult(_));
        message.content.iter().any(|block| is_or_has(block, is_it))
            && !message.content.iter().any(is_result)
    })
}

/// Returns true if a block is a document other than plain text.
fn is_file(block: &Block<'_>) -> bool {
    match block {
        Block::Document(document) => {
            !matches!(&document.source, DocumentSource::Text(_) | DocumentSource::Content(_))
        }
        _ => false,
    }
}

fn has_block(request: &Request<'_>, is_it: fn(&Block<'_>) -> bool) -> bool {
    let has = |message: &Message<'_>| message.content.iter().any(|block| is_or_has(block, is_it));
    request.messages.iter().any(has)
}

fn is_image(block: &Block<'_>) -> bool {
    matches!(block, Block::Image(_))
}

/// Returns true if a block is an image, or contains an image.
pub(crate) fn has_image(block: &Block<'_>) -> bool {
    is_or_has(block, is_image)
}

/// Returns true if `is_it` holds for a block, or for a block nested in that block.
fn is_or_has(block: &Block<'_>, is_it: fn(&Block<'_>) -> bool) -> bool {
    is_it(block) || within(block).iter().any(|block| is_or_has(block, is_it))
}

/// Returns the blocks that are directly nested in a block.
fn within<'b, 'a>(block: &'b Block<'a>) -> &'b [Block<'a>] {
    match block {
        Block::ToolResult(result) => &result.content,
        Block::Document(document) => match &document.source {
            DocumentSource::Content(inner) => inner,
            _ => &[],
        },
        _ => &[],
    }
}

/// Returns the hosts from which the upstream has to fetch images. An upstream's error about an
/// image may name only the host.
fn image_hosts(request: &Request<'_>) -> Vec<String> {
    let mut hosts = Vec::new();
    for message in &request.messages {
        message.content.iter().for_each(|block| collect_hosts(block, &mut hosts));
    }
    hosts
}

fn collect_hosts(block: &Block<'_>, hosts: &mut Vec<String>) {
    if let Block::Image(image) = block
        && image.source.is_remote()
        && let ImageSource::Url(url) = &image.source
        && let Some(host) = host_of(*url)
        && hosts.len() < HOSTS_MAX
        && !hosts.contains(&host)
    {
        hosts.push(host);
    }
    within(block).iter().for_each(|block| collect_hosts(block, hosts));
}

/// Returns the host of a URL in lower case, without user and port.
fn host_of(url: Str<'_>) -> Option<String> {
    let url = url.decode();
    let (_, rest) = words::split_once(&url, "://")?;
    let authority = words::before(rest, b"/?#");
    let host = words::rsplit_once(authority, b'@').map_or(authority, |(_, host)| host);
    // The colons in `[::1]:80` before the bracket belong to the host.
    let host = match words::split_once(host, "]") {
        Some((address, _)) => words::trim_start(address, b"["),
        None => words::before(host, b":"),
    };
    (!host.is_empty()).then(|| host.to_ascii_lowercase())
}
