//! Defines `Renderer`, which renders Markdown as safe HTML within limits of size, depth and time.
//!
//! One library renders, with raw HTML escaped; another removes all but a short list of tags and
//! attributes. **Invariant:** the result runs no script, loads nothing by itself, and has no class but
//! ours; links open in a new tab.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use ammonia::{Builder, UrlRelative};
use comrak::nodes::{AstNode, NodeValue};
use comrak::{Arena, Options};

use crate::limits::{MAX_OUTPUT, is_within_limits};
use crate::plain_text::{escape, plain_html};

/// Maximum depth of the parsed tree; a level of a list counts twice.
const MAX_TREE_DEPTH: usize = 80;
/// Maximum time for a text, checked between the steps: ten times what the slowest accepted text
/// needs, so that texts are still rendered on a busy machine.
const MAX_TIME: Duration = Duration::from_secs(1);
/// The class of a link that replaces an image.
const EXTERNAL_IMAGE: &str = "external-image";

/// A Markdown renderer.
#[derive(Debug)]
pub struct Renderer {
    allowed: Builder<'static>,
    time_limit: Duration,
}

/// Rendering exceeded the time limit, which is checked between the steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rendering took too long")]
pub struct RenderTimeout;

impl Default for Renderer {
    fn default() -> Self {
        Self::with_time_limit(MAX_TIME)
    }
}

impl Renderer {
    /// Creates a renderer with this time limit for each text; the default is one second.
    pub fn with_time_limit(time_limit: Duration) -> Self {
        Self {
            allowed: allow_list(),
            time_limit,
        }
    }

    /// Returns `text` as safe HTML; as [`plain_html`] if it exceeds a limit of size or depth, or
    /// makes a library panic.
    ///
    /// # Errors
    /// Returns [`RenderTimeout`] if the text took longer than the time limit, for example on a busy
    /// machine.
    pub fn render(&self, text: &str) -> Result<String, RenderTimeout> {
        if !is_within_limits(text) {
            return Ok(plain_html(text));
        }
        let deadline = Instant::now() + self.time_limit;
        // A text that makes a library panic must not make its page unreadable.
        let html = catch_unwind(AssertUnwindSafe(|| self.to_safe_html(text, deadline)));
        let html = html.unwrap_or(Ok(None))?;
        Ok(html.unwrap_or_else(|| plain_html(text)))
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
    let escaped_label = escape(if label.trim().is_empty() {
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
        return escaped_label;
    }
    let mut html = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        html,
        "<a class=\"{EXTERNAL_IMAGE}\" href=\"{}\">{escaped_label}</a>",
        escape(&link.url)
    );
    html
}

fn starts_with(url: &str, scheme: &str) -> bool {
    url.get(..scheme.len())
        .is_some_and(|it| it.eq_ignore_ascii_case(scheme))
}

#[cfg(test)]
#[path = "renderer_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "renderer_bomb_tests.rs"]
mod bomb_tests;

#[cfg(test)]
#[path = "renderer_attack_tests.rs"]
mod attack_tests;
