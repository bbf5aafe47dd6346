//! Keeps compiled patterns of scripts, so that they are not compiled for each text.

use std::sync::{Arc, LazyLock};

use moka::sync::Cache;

use crate::pattern::js_pattern::JsPattern;
use crate::pattern::syntax::syntax_error::PatternSyntaxError;

/// The number of compiled patterns in the cache.
const MAX_CACHED: u64 = 2_000;

type CachedPattern = Result<Arc<JsPattern>, PatternSyntaxError>;

/// Returns a compiled pattern, from the cache if possible; with its captures if they are needed.
///
/// # Errors
/// Returns why the pattern is invalid.
pub fn compile(source: &str, flags: &str, needs_captures: bool) -> CachedPattern {
    static COMPILED: LazyLock<Cache<String, CachedPattern>> =
        LazyLock::new(|| Cache::new(MAX_CACHED));
    let key = format!("{}{flags}/{source}", if needs_captures { "+" } else { "" });
    let compile = || match needs_captures {
        true => JsPattern::compile_with_captures(source, flags),
        false => JsPattern::compile(source, flags),
    };
    COMPILED.get_with(key, || compile().map(Arc::new))
}
