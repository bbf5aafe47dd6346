//! Markdown: for any text the HTML contains only the allowed tags and attributes.

use std::sync::LazyLock;
use std::time::Duration;

use safe_markdown::limits::MAX_OUTPUT;
use safe_markdown::renderer::Renderer;

const TAGS: &[&str] = &[
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
const ATTRIBUTES: &[&str] = &[
    "href", "target", "rel", "class", "type", "checked", "disabled", "start", "align",
];

/// The fuzzer itself stops an execution that needs too long.
const NO_LIMIT: Duration = Duration::from_secs(3_600);

/// Renders the bytes as Markdown.
pub fn check(data: &[u8]) {
    static RENDERER: LazyLock<Renderer> = LazyLock::new(|| Renderer::with_time_limit(NO_LIMIT));
    let text = String::from_utf8_lossy(data);

    let html = RENDERER.render(&text).expect("an hour is enough");

    // A text that is rendered as plain text grows by its escapes.
    assert!(
        html.len() <= MAX_OUTPUT.max(6 * text.len() + 64),
        "{} bytes",
        html.len()
    );
    for (at, _) in html.match_indices('<') {
        let tag = html[at + 1..].split('>').next().unwrap_or_default();
        check_tag(tag.trim_end_matches('/').trim(), &html);
    }
}

fn check_tag(tag: &str, html: &str) {
    let name = tag
        .trim_start_matches('/')
        .split_whitespace()
        .next()
        .unwrap_or_default();
    assert!(TAGS.contains(&name), "<{tag}> in {html}");
    let mut rest = &tag[tag.find(name).unwrap_or(0) + name.len()..];
    while let Some((attribute, value)) = rest.split_once("=\"") {
        let attribute = attribute.trim();
        assert!(
            ATTRIBUTES.contains(&attribute),
            "{attribute} in <{tag}> in {html}"
        );
        let (value, after) = value
            .split_once('"')
            .expect("an attribute value has no closing quote");
        if attribute == "href" {
            let scheme = value.split_once(':').map_or("", |it| it.0);
            let scheme = scheme.to_ascii_lowercase();
            assert!(
                ["http", "https", "mailto"].contains(&scheme.as_str()),
                "{value} in {html}"
            );
        }
        rest = after;
    }
    assert_eq!(rest.trim(), "", "<{tag}> in {html}");
}
