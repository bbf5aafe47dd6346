//! Defines `Markdown`, which renders Markdown from users and models as HTML that is safe to insert
//! into a page, and caches the HTML in memory.
//!
//! One library renders, with raw HTML escaped; another removes all but a short list of tags and
//! attributes. **Invariant:** the result loads nothing by itself, runs no script, and has no class
//! but ours; links open in a new tab. A text that exceeds a limit is shown as plain text. Rendering
//! is CPU-bound, up to a few milliseconds for a long text: each text is rendered once, and pages of
//! texts must not be rendered on an async thread.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ammonia::{Builder, UrlRelative};
use comrak::nodes::{AstNode, NodeValue};
use comrak::{Arena, Options};
use moka::sync::Cache;
use sha2::{Digest, Sha256};

use crate::conversations::rendering::markdown_limits::{MAX_OUTPUT, is_within_limits};
use crate::memory_limited_cache::memory_limited_cache;

/// Maximum depth of the parsed tree; a level of a list counts twice.
const MAX_TREE_DEPTH: usize = 80;
/// Maximum time for a text, checked between the steps: ten times what the slowest accepted text
/// needs, so that texts are still rendered on a busy machine.
const MAX_TIME: Duration = Duration::from_secs(1);
/// Maximum size of the cached HTML in bytes.
const CACHE_BYTES: u64 = 32 * 1024 * 1024;
/// The class of a link that replaces an image.
const EXTERNAL_IMAGE: &str = "external-image";

/// A Markdown renderer with a cache.
#[derive(Debug)]
pub struct Markdown {
    /// Keyed by the hash of the text. Entries live as long as the process or until evicted.
    cache: Cache<[u8; 32], Arc<str>>,
    allowed: Builder<'static>,
    time_limit: Duration,
}

/// The time limit was exceeded between two steps.
struct RenderTimeout;

impl Default for Markdown {
    fn default() -> Self {
        Self::new()
    }
}

impl Markdown {
    /// Creates a renderer with an empty cache.
    pub fn new() -> Self {
        Self {
            cache: memory_limited_cache(CACHE_BYTES, |_, html: &Arc<str>| html.len() + 64),
            allowed: allow_list(),
            time_limit: MAX_TIME,
        }
    }

    /// Returns `text` as safe HTML.
    pub fn render(&self, text: &str) -> Arc<str> {
        let key = Sha256::digest(text).into();
        let rendered = self.cache.try_get_with(key, || self.render_uncached(text));
        // A timeout is not cached, because the machine may be less busy the next time.
        rendered.unwrap_or_else(|_| plain_html(text).into())
    }

    fn render_uncached(&self, text: &str) -> Result<Arc<str>, RenderTimeout> {
        if !is_within_limits(text) {
            return Ok(plain_html(text).into());
        }
        let deadline = Instant::now() + self.time_limit;
        // A text that makes a library panic must not make the conversation unreadable.
        let html = catch_unwind(AssertUnwindSafe(|| self.to_safe_html(text, deadline)));
        let html = html.unwrap_or(Ok(None))?;
        Ok(html.unwrap_or_else(|| plain_html(text)).into())
    }

    /// Renders and sanitizes the text; returns `None` if the result is too deep or too long.
    fn to_safe_html(&self, text: &str, deadline: Instant) -> Result<Option<String>, RenderTimeout> {
        let options = options();
        let arena = Arena::new();
        let root = comrak::parse_document(&arena, text, &options);
        check_deadline(deadline)?;
        if tree_depth(root) > MAX_TREE_DEPTH {
            return Ok(None);
        }
        replace_images(root);
        let mut html = String::new();
        let formatted = comrak::format_html(root, &options, &mut html);
        check_deadline(deadline)?;
        if formatted.is_err() || html.len() > MAX_OUTPUT {
            return Ok(None);
        }
        let clean = self.allowed.clean(&html).to_string();
        Ok((clean.len() <= MAX_OUTPUT).then_some(clean))
    }
}

fn check_deadline(deadline: Instant) -> Result<(), RenderTimeout> {
    match Instant::now() < deadline {
        true => Ok(()),
        false => Err(RenderTimeout),
    }
}

fn options() -> Options<'static> {
    let mut options = Options::default();
    options.extension.autolink = true;
    options.extension.strikethrough = true;
    options.extension.table = true;
    options.extension.tasklist = true;
    options.parse.ignore_setext = true; // a line of dashes is a scene break, not a heading
    options.render.hardbreaks = true;
    options.render.escape = true; // `Vec<String>` stays readable
    options
}

/// Returns the sanitizer with the allowed tags and attributes; everything else is removed.
fn allow_list() -> Builder<'static> {
    let tags = [
        "a",
        "blockquote",
        "br",
        "code",
        "del",
        "em",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "input",
        "li",
        "ol",
        "p",
        "pre",
        "strong",
        "table",
        "tbody",
        "td",
        "th",
        "thead",
        "tr",
        "ul",
    ];
    let attributes: [(&str, &[&str]); 3] = [
        ("a", &["href"]),
        ("input", &["checked"]),
        ("ol", &["start"]),
    ];
    let sides = HashSet::from(["left", "center", "right"]);
    let values = HashMap::from([
        (
            "input",
            HashMap::from([("type", HashSet::from(["checkbox"]))]),
        ),
        ("td", HashMap::from([("align", sides.clone())])),
        ("th", HashMap::from([("align", sides)])),
    ]);
    let mut builder = Builder::empty();
    builder
        .tags(tags.into())
        .tag_attributes(
            attributes
                .into_iter()
                .map(|(tag, names)| (tag, names.iter().copied().collect()))
                .collect(),
        )
        .tag_attribute_values(values)
        .set_tag_attribute_value("a", "target", "_blank")
        .set_tag_attribute_value("input", "disabled", "")
        .allowed_classes(HashMap::from([("a", HashSet::from([EXTERNAL_IMAGE]))]))
        .generic_attributes(HashSet::new()) // otherwise `title` is allowed on every tag
        .url_schemes(["http", "https", "mailto"].into())
        .url_relative(UrlRelative::Deny)
        .link_rel(Some("noopener noreferrer nofollow ugc"));
    builder
}

/// Returns the depth of the tree. Not recursive, because untrusted text determines the depth.
fn tree_depth<'a>(root: &'a AstNode<'a>) -> usize {
    let mut deepest = 0;
    let mut waiting = vec![(root, 1)];
    while let Some((node, depth)) = waiting.pop() {
        deepest = deepest.max(depth);
        if depth > MAX_TREE_DEPTH {
            break;
        }
        waiting.extend(node.children().map(|child| (child, depth + 1)));
    }
    deepest
}

/// Replaces images by links, because loading an image reveals the viewer to its server.
fn replace_images<'a>(root: &'a AstNode<'a>) {
    let images = root
        .descendants()
        .filter(|it| matches!(it.data.borrow().value, NodeValue::Image(_)));
    for image in images.collect::<Vec<_>>() {
        let html = image_replacement(image);
        image
            .children()
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|it| it.detach());
        image.data.borrow_mut().value = NodeValue::Raw(html);
    }
}

/// Returns the link with the alternative text as its label; inside a link only the label.
fn image_replacement<'a>(image: &'a AstNode<'a>) -> String {
    let data = image.data.borrow();
    let NodeValue::Image(link) = &data.value else {
        return String::new();
    };
    let mut label = String::new();
    for node in image.descendants() {
        match &node.data.borrow().value {
            NodeValue::Text(text) => label.push_str(text),
            NodeValue::Code(code) => label.push_str(&code.literal),
            _ => {}
        }
    }
    let called = escape(if label.trim().is_empty() {
        &link.url
    } else {
        &label
    });
    let is_inside_link = image
        .ancestors()
        .skip(1)
        .any(|it| matches!(it.data.borrow().value, NodeValue::Link(_)));
    let is_external = ["http://", "https://"]
        .iter()
        .any(|it| starts_with(&link.url, it));
    if is_inside_link || !is_external {
        return called;
    }
    let mut html = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        html,
        "<a class=\"{EXTERNAL_IMAGE}\" href=\"{}\">{called}</a>",
        escape(&link.url)
    );
    html
}

fn starts_with(url: &str, scheme: &str) -> bool {
    url.get(..scheme.len())
        .is_some_and(|it| it.eq_ignore_ascii_case(scheme))
}

/// Returns the text as typed, line by line.
fn plain_html(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(escape).collect();
    format!("<p>{}</p>", lines.join("<br>\n"))
}

fn escape(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            '\0' => html.push('\u{FFFD}'),
            _ => html.push(letter),
        }
    }
    html
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "markdown_bomb_tests.rs"]
mod bomb_tests;

#[cfg(test)]
#[path = "markdown_attack_tests.rs"]
mod attack_tests;
