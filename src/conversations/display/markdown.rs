//! Defines `Markdown`, which renders the Markdown of messages as safe HTML and caches it in memory.
//!
//! Rendering is CPU-bound, up to a few milliseconds for a long text: each text is rendered once, and
//! pages of texts must not be rendered on an async thread.

use std::sync::Arc;

use moka::sync::Cache;
use safe_markdown::plain_text::plain_html;
use safe_markdown::renderer::{RenderTimeout, Renderer};
use sha2::{Digest, Sha256};

use crate::memory_limited_cache::memory_limited_cache;

/// Maximum size of the cached HTML in bytes.
const CACHE_BYTES: u64 = 32 * 1024 * 1024;

/// A Markdown renderer with a cache.
#[derive(Debug)]
pub struct Markdown {
    /// Keyed by the hash of the text. Entries live as long as the process or until evicted.
    cache: Cache<[u8; 32], Arc<str>>,
    renderer: Renderer,
}

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
            renderer: Renderer::default(),
        }
    }

    /// Returns `text` as safe HTML; as plain text if it exceeds a limit.
    pub fn render(&self, text: &str) -> Arc<str> {
        let key = Sha256::digest(text).into();
        let render =
            || -> Result<Arc<str>, RenderTimeout> { Ok(self.renderer.render(text)?.into()) };
        // A timeout is not cached, because the machine may be less busy the next time.
        let rendered = self.cache.try_get_with(key, render);
        rendered.unwrap_or_else(|_| plain_html(text).into())
    }

    /// Returns a text that `make` makes from `text` as safe HTML; `key` is a hash of all that it
    /// depends on. If `make` returns `None`, `text` itself is rendered, and the next call tries again.
    pub fn render_made(
        &self,
        key: [u8; 32],
        text: &str,
        make: impl FnOnce() -> Option<String>,
    ) -> Arc<str> {
        if let Some(known) = self.cache.get(&key) {
            return known;
        }
        let Some(made) = make() else {
            return self.render(text);
        };
        let html = self.render(&made);
        self.cache.insert(key, html.clone());
        html
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use safe_markdown::plain_text::plain_html;
    use safe_markdown::renderer::Renderer;

    use super::Markdown;

    #[test]
    fn the_same_text_is_rendered_once() {
        let markdown = Markdown::new();

        let (first, second) = (markdown.render("*a*"), markdown.render("*a*"));

        assert!(Arc::ptr_eq(&first, &second));
        assert!(!Arc::ptr_eq(&first, &markdown.render("*b*")));
    }

    #[test]
    fn a_text_that_times_out_is_shown_as_plain_text_and_rendered_the_next_time() {
        let mut markdown = Markdown::new();
        markdown.renderer = Renderer::with_time_limit(Duration::ZERO);
        assert_eq!(*markdown.render("*a*"), *plain_html("*a*"));

        markdown.renderer = Renderer::default();

        assert_eq!(markdown.render("*a*").trim_end(), "<p><em>a</em></p>");
    }
}
