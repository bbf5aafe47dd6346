//! Keys that are regular expressions in JavaScript syntax (`/pattern/flags`): reads and compiles
//! them, and searches a text for them.
//!
//! **Invariant:** patterns are untrusted: their length, their steps and their input are limited.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use moka::sync::Cache;

use crate::lorebook::scan_budget::{MAX_PATTERN_STEPS, ScanBudget, SearchLimit};
use crate::pattern::js_pattern::JsPattern;
use crate::pattern::matcher::Matcher;
use crate::pattern::pattern_text::PatternText;
use crate::pattern::syntax::syntax_error::PatternSyntaxError;

/// The number of compiled patterns in the cache.
const MAX_CACHED: u64 = 2_000;

type CompiledPattern = Result<Arc<JsPattern>, PatternSyntaxError>;

/// A pattern in one scan.
pub struct PatternKey {
    pattern: Arc<JsPattern>,
    /// The number of its lorebook in the scan.
    lorebook: usize,
    /// The steps that are left for it in this scan.
    steps_left: Cell<u64>,
    latest: RefCell<Option<LatestSearch>>,
}

/// The latest search of a pattern: passes with the same text do not search again.
struct LatestSearch {
    text: Rc<PatternText>,
    result: Result<bool, SearchLimit>,
}

impl PatternKey {
    /// Creates the key for one scan.
    pub fn new(pattern: Arc<JsPattern>, lorebook: usize) -> Self {
        Self {
            pattern,
            lorebook,
            steps_left: Cell::new(MAX_PATTERN_STEPS),
            latest: RefCell::new(None),
        }
    }

    /// Returns whether the pattern matches in a text.
    ///
    /// # Errors
    /// Returns `Pattern` or `Lorebook` if that has used up its steps.
    pub fn is_match(
        &self,
        text: &Rc<PatternText>,
        matcher: &RefCell<Matcher>,
        budget: &ScanBudget,
    ) -> Result<bool, SearchLimit> {
        if let Some(latest) = &*self.latest.borrow()
            && Rc::ptr_eq(&latest.text, text)
        {
            return latest.result;
        }
        let own = self.steps_left.get();
        let allowed = own.min(budget.pattern_steps(self.lorebook));
        let mut left = allowed;
        let found = matcher.borrow_mut().find(&self.pattern, text, &mut left);
        let n_steps = allowed - left;
        budget.spend_pattern_steps(self.lorebook, n_steps);
        self.steps_left.set(own - n_steps);
        let result = match found {
            Ok(found) => Ok(found.is_some()),
            Err(_) if allowed < own => Err(SearchLimit::Lorebook),
            Err(_) => Err(SearchLimit::Pattern),
        };
        *self.latest.borrow_mut() = Some(LatestSearch {
            text: text.clone(),
            result,
        });
        result
    }
}

/// Splits a key of the form `/pattern/flags`; returns `None` for other keys.
pub fn parse_literal(key: &str) -> Option<(&str, &str)> {
    let inner = key.strip_prefix('/')?;
    let end = inner.rfind('/')?;
    let (body, flags) = (&inner[..end], &inner[end + 1..]);
    let is_flag = |it: char| "dgimsuvy".contains(it);
    let is_one = !body.is_empty() && flags.chars().all(is_flag) && !has_bare_slash(body);
    is_one.then_some((body, flags))
}

fn has_bare_slash(body: &str) -> bool {
    let mut is_escaped = false;
    body.chars().any(|it| {
        let is_bare = it == '/' && !is_escaped;
        is_escaped = it == '\\' && !is_escaped;
        is_bare
    })
}

/// Escapes a pattern so that it can be written between slashes.
pub fn escape_slashes(body: &str) -> String {
    let mut escaped = String::with_capacity(body.len());
    let mut is_escaped = false;
    for sign in body.chars() {
        if sign == '/' && !is_escaped {
            escaped.push('\\');
        }
        escaped.push(sign);
        is_escaped = sign == '\\' && !is_escaped;
    }
    escaped
}

/// Returns a compiled pattern, from the cache if possible.
///
/// # Errors
/// Returns why the pattern is invalid.
pub fn compile(body: &str, flags: &str) -> CompiledPattern {
    static COMPILED: LazyLock<Cache<String, CompiledPattern>> =
        LazyLock::new(|| Cache::new(MAX_CACHED));
    let key = format!("{flags}/{body}");
    COMPILED.get_with(key, || JsPattern::compile(body, flags).map(Arc::new))
}

#[cfg(test)]
#[path = "pattern_key_tests.rs"]
mod tests;
