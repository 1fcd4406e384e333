//! Step for images on the web, if the upstream accepts images only as data: the images are fetched
//! and embedded.
//!
//! Each URL is fetched once, and the newest first, because the number per request is limited.

use std::ops::Range;

use super::address::WebAddress;
use super::descriptions::is_described;
use super::{
    Came, Change, Nothing, Question, ReadLimits, See, Step, WebAnswer, WebQuestion, blocks,
};
use crate::config::{FetchImages, Settings};
use crate::error::Error;
use crate::history::body_images::write_source;
use crate::json::{self, Str};
use crate::model::{Block, ImageSource, image_type, path_at};
use crate::observe::report::Report;
use crate::observe::warning::Warnings;
use crate::profile::ImageParts;
use crate::text::base64;
use crate::text::names::Names;

/// Media types of images that models accept.
const ACCEPT: &str = "image/png, image/jpeg, image/gif, image/webp";

/// Maximum number of images of one request; images with the same URL count once.
const IMAGES_MAX: usize = 20;

/// Maximum number of HTTP redirections followed for one image.
const REDIRECTIONS_MAX: u32 = 3;

/// Web images of one request that are being fetched.
pub(crate) struct Images {
    /// Images in the order of the request body.
    found: Vec<FoundImage>,
    /// Images to fetch, one for each URL, the newest first.
    wanted: Vec<WantedImage>,
    /// Index in `wanted` of the next image to fetch.
    at: usize,
    settings: FetchImages,
    /// Number of bytes by which the request body may still grow.
    room: usize,
    held: usize,
}

/// Image in the request body.
struct FoundImage {
    block: Range<usize>,
    /// True if the request is refused when this image cannot be fetched.
    must_come: bool,
    /// Index of the image in `wanted`, or the reason why the image is not fetched.
    wanted: Result<usize, Missing>,
}

/// Image to fetch from the web.
struct WantedImage {
    address: WebAddress,
    is_private: bool,
    redirections: u32,
    /// Source of the fetched image with its data, as JSON; `None` until the image was fetched.
    source: Option<Result<String, Missing>>,
}

/// Reason why an image was not fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Reason: the configuration does not allow the image's host.
    NotAllowed,
    /// Reason: the request has more than `IMAGES_MAX` images.
    TooMany,
    /// Reason: the image's server could not be reached.
    Unreachable,
    /// Reason: the image's server did not answer in time.
    TimedOut,
    /// Reason: the image's server answered with this HTTP status.
    Status(u16),
    /// Reason: the image's server redirected to a forbidden address, or too often.
    Redirected,
    /// Reason: the image's server broke off before the end of the image.
    BrokeOff,
    /// Reason: the image has more bytes than this limit.
    TooLarge(usize),
    /// Reason: the first bytes match no image type that models accept.
    NoImage,
    /// Reason: the request would be too large with the image.
    NoRoom,
}

impl Missing {
    /// Returns the text that follows "the image could not be fetched: " in an error.
    fn words(self) -> String {
        match self {
            Self::NotAllowed => "this gateway fetches none from there".to_owned(),
            Self::TooMany => format!("this gateway fetches {IMAGES_MAX} for a request"),
            Self::Unreachable => "its server could not be reached".to_owned(),
            Self::TimedOut => "it did not come in time".to_owned(),
            Self::Status(status) => format!("its server answered with status {status}"),
            Self::Redirected => "its server sends readers elsewhere".to_owned(),
            Self::BrokeOff => "its server broke off".to_owned(),
            Self::TooLarge(max) => format!("it has more than {max} bytes"),
            Self::NoImage => "it is no JPEG, PNG, GIF or WebP".to_owned(),
            Self::NoRoom => "the request would be too large with it".to_owned(),
        }
    }
}

/// Collects the web images of a request, if the upstream accepts images only as data, or if another
/// model describes images.
pub(crate) fn begin(see: &See<'_>, _: &mut Report) -> Option<Box<dyn Step>> {
    let settings = &see.config.settings;
    if settings.fetch_images.hosts.is_empty() || !see.can.fetch {
        return None;
    }
    let text = see.text()?;
    let (upstream, model) = see.route(text)?;
    let must_come = match upstream.profile.image_parts {
        ImageParts::Data => true,
        // An image that is not described is replaced by a text anyway, so no image is required.
        ImageParts::None if is_described(see.config, upstream, &model) => false,
        ImageParts::None | ImageParts::All => return None,
    };
    Some(Box::new(Images::of(text, settings, must_come)?))
}

impl Step for Images {
    fn timeout_ms(&self, settings: &Settings) -> u64 {
        settings.fetch_images.timeout_ms
    }

    fn questions_left(&self) -> usize {
        self.wanted.len().saturating_sub(self.at)
    }

    fn ask<'s>(&self, _: &See<'s>, ahead: usize) -> Option<Question<'s>> {
        // Each image that is being fetched may be as large as the limit. Images that may not fit
        // into the request are fetched one at a time.
        let each = base64::length_of(self.settings.bytes_max);
        let most = each.saturating_mul(ahead.saturating_add(1));
        if ahead > 0 && most > self.room.saturating_sub(self.held) {
            return None;
        }
        let at = self.at.saturating_add(ahead);
        let WantedImage { address, is_private, .. } = self.wanted.get(at)?;
        let (url, may_be_private) = (address.url(), *is_private);
        let cluster = self.settings.cluster.clone();
        let question =
            WebQuestion { url, may_be_private, accept: ACCEPT, user_agent: None, cluster };
        Some(Question::Web(question))
    }

    fn limits(&self, _: usize, status: u16, settings: &Settings) -> ReadLimits {
        // Read one byte more than the limit to detect larger images. The body of an error status is
        // not needed.
        let bytes = settings.fetch_images.bytes_max.saturating_add(1);
        let bytes_max = if (200..300).contains(&status) { bytes } else { 0 };
        ReadLimits { bytes_max, is_half_enough: true }
    }

    fn take(&mut self, came: Came, report: &mut Report) {
        let WebAnswer { status, location, body, is_whole, .. } = match came {
            Came::Web(answer) => answer,
            Came::Nothing(Nothing::TimedOut) => return self.take_image(Err(Missing::TimedOut)),
            Came::Nothing(Nothing::BrokeOff) => return self.take_image(Err(Missing::BrokeOff)),
            _ => return self.take_image(Err(Missing::Unreachable)),
        };
        let report = report.images.get_or_insert_default();
        report.bytes = report.bytes.saturating_add(body.len());
        match (status, location) {
            (200..300, _) if is_whole => self.take_image(Ok(&body)),
            (200..300, _) => self.take_image(Err(Missing::BrokeOff)),
            (300..400, Some(location)) => self.redirect(&location),
            (status, _) => self.take_image(Err(Missing::Status(status))),
        }
    }

    fn done(self: Box<Self>, see: &See<'_>, report: &mut Report) -> Result<Change, Error> {
        let (fetched, missing) = self.counts();
        let duration_ms = see.now.saturating_sub(report.requested_at);
        let images = report.images.get_or_insert_default();
        (images.fetched, images.missing, images.duration_ms) = (fetched, missing, duration_ms);
        Ok(Change::Body(self.written(see.text().unwrap_or_default(), &mut report.warnings)?))
    }

    fn held_bytes(&self) -> usize {
        self.held
    }
}

impl Images {
    /// Finds the web images of a body. Returns `None` if the body has no web images. `must_come`:
    /// true if a new image that cannot be fetched is an error.
    fn of(body: &str, settings: &Settings, must_come: bool) -> Option<Self> {
        if !blocks::may_have(body, "\"url\"") {
            return None;
        }
        let fetching = &settings.fetch_images;
        let mut images = Self {
            found: Vec::new(),
            wanted: Vec::new(),
            at: 0,
            settings: fetching.clone(),
            room: settings.request_bytes_max.saturating_sub(body.len()),
            held: 0,
        };
        let mut urls = Vec::new();
        blocks::visit(body, &mut |block, is_new| {
            let Block::Image(image) = block else { return };
            let ImageSource::Url(url) = &image.source else { return };
            if image.source.is_remote() {
                let block = blocks::span(body, image.at);
                images.found.push(FoundImage {
                    block,
                    must_come: must_come && is_new,
                    wanted: Err(Missing::NotAllowed),
                });
                urls.push(url.decode().into_owned());
            }
        });
        images.want(urls);
        if images.found.iter().any(|found| found.must_come && found.wanted.is_err()) {
            // The request is refused anyway, so no image is fetched.
            images.at = images.wanted.len();
        }
        (!images.found.is_empty()).then_some(images)
    }

    /// Chooses the images to fetch from the URLs of all images found.
    fn want(&mut self, urls: Vec<String>) {
        let mut known = Names::default();
        for (found, url) in self.found.iter_mut().zip(urls).rev() {
            let wanted = &mut self.wanted;
            let place = known.get_or_insert_with(url.into(), |url| {
                let address = WebAddress::parse(url).ok_or(Missing::NotAllowed)?;
                let is_private = address.is_permitted(&self.settings).ok_or(Missing::NotAllowed)?;
                let at = wanted.len();
                if at >= IMAGES_MAX {
                    return Err(Missing::TooMany);
                }
                wanted.push(WantedImage { address, is_private, redirections: 0, source: None });
                Ok(at)
            });
            found.wanted = place.copied().unwrap_or(Err(Missing::NotAllowed));
        }
    }

    /// Stores the current image, or the reason why the image could not be fetched.
    fn take_image(&mut self, came: Result<&[u8], Missing>) {
        let room = self.room.saturating_sub(self.held);
        let source = came.and_then(|bytes| {
            let max = self.settings.bytes_max;
            match bytes.len() {
                length if length > max => Err(Missing::TooLarge(max)),
                length if base64::length_of(length) > room => Err(Missing::NoRoom),
                _ => source_of(bytes),
            }
        });
        self.held = self.held.saturating_add(source.as_ref().map_or(0, String::len));
        let missing = source.as_ref().err().copied();
        let Some(wanted) = self.wanted.get_mut(self.at) else { return };
        wanted.source = Some(source);
        let is_refused = missing.is_some() && self.must_have(self.at);
        self.at = self.at.saturating_add(1);
        if is_refused || missing == Some(Missing::NoRoom) {
            // The request is refused or full, so no further image is fetched.
            for wanted in self.wanted.iter_mut().skip(self.at) {
                wanted.source = Some(Err(Missing::NoRoom));
            }
            self.at = self.wanted.len();
        }
    }

    /// Returns true if the request is refused without the image at this index of `wanted`.
    fn must_have(&self, at: usize) -> bool {
        self.found.iter().any(|found| found.must_come && found.wanted == Ok(at))
    }

    /// Follows the redirection of the image that is being fetched.
    fn redirect(&mut self, location: &str) {
        let Some(wanted) = self.wanted.get_mut(self.at) else { return };
        wanted.redirections = wanted.redirections.saturating_add(1);
        let there = wanted.address.redirected(location).and_then(|address| {
            let is_private = address.is_permitted(&self.settings)?;
            Some((address, is_private))
        });
        match there.filter(|_| wanted.redirections <= REDIRECTIONS_MAX) {
            Some((address, is_private)) => {
                (wanted.address, wanted.is_private) = (address, is_private);
            }
            None => self.take_image(Err(Missing::Redirected)),
        }
    }

    /// Returns the number of images that were fetched, and the number of images that were not.
    fn counts(&self) -> (usize, usize) {
        let came = self.wanted.iter().filter(|wanted| matches!(wanted.source, Some(Ok(_)))).count();
        (came, self.wanted.len().saturating_sub(came))
    }

    fn written(mut self, body: &str, warnings: &mut Warnings) -> Result<Vec<u8>, Error> {
        // An image that the configuration does not allow refuses the request first, because it
        // prevented the fetch of further images.
        let refused = |found: &&FoundImage| found.must_come && found.wanted.is_err();
        if let Some(found) = self.found.iter().rev().find(refused) {
            return Err(refusal(body, found, found.wanted.err().unwrap_or(Missing::NotAllowed)));
        }
        let mut edits = Vec::with_capacity(self.found.len());
        // Replace the newest images first, while the size limit allows. A request could repeat one
        // image a thousand times.
        for found in std::mem::take(&mut self.found).into_iter().rev() {
            let block = body.get(found.block.clone()).unwrap_or_default();
            let text = match self.source_for(&found) {
                Ok(source) => blocks::with_source(block, source),
                Err(missing) if found.must_come => return Err(refusal(body, &found, missing)),
                // Leave the image as if no image were ever fetched.
                Err(Missing::NotAllowed) => None,
                Err(missing) => {
                    warnings.add("image_not_fetched");
                    let why = missing.words();
                    Some(blocks::text_for(block, &format!("[image omitted: {why}]")))
                }
            };
            if let Some(text) = text {
                self.room = self.room.saturating_sub(text.len());
                edits.push((found.block, text));
            }
        }
        edits.reverse();
        Ok(blocks::replaced(body, &edits))
    }

    fn source_for(&self, found: &FoundImage) -> Result<&str, Missing> {
        let wanted = self.wanted.get(found.wanted?).and_then(|wanted| wanted.source.as_ref());
        let source = wanted
            .map_or(Err(Missing::TimedOut), |source| source.as_deref().map_err(|why| *why))?;
        if source.len() > self.room { Err(Missing::NoRoom) } else { Ok(source) }
    }
}

/// Returns the error of a request that is refused for lack of an image.
fn refusal(body: &str, found: &FoundImage, missing: Missing) -> Error {
    let (path, why) = (path_at(body, found.block.start), missing.words());
    let message =
        format!("{path}.source.url: the image could not be fetched: {why}; send it as base64");
    Error::invalid(message)
}

/// Returns the JSON `source` of an image with these bytes.
fn source_of(bytes: &[u8]) -> Result<String, Missing> {
    // The first bytes of the image are encoded alone to detect its type.
    let start = base64::encode(bytes.get(..bytes.len().min(START)).unwrap_or_default());
    let media_type = image_type::of(Str::plain(&start)).ok_or(Missing::NoImage)?;
    let data = base64::encode(bytes);
    let (media_type, data) = (Str::plain(media_type), Str::plain(&data));
    Ok(json::written(|json| write_source(json, &ImageSource::Base64 { media_type, data })))
}

/// Number of first bytes that suffice to detect the type of an image.
const START: usize = 12;

#[cfg(test)]
mod tests;
