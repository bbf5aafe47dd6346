//! Applies scripts to texts.
//!
//! **Invariant:** scripts are untrusted: the steps for each script and text, the steps for all texts of
//! a page or a prompt, and the length of each result are limited. A script that exceeds a limit leaves
//! the text as it was.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use base::message_text;

use crate::pattern::js_pattern::JsPattern;
use crate::pattern::matcher::{Matcher, PatternMatch};
use crate::pattern::pattern_text::PatternText;
use crate::regex_scripts::replacement::{Replacement, ReplacementPart};
use crate::regex_scripts::script::RegexScript;
use crate::regex_scripts::script_error::ScriptError;
use crate::regex_scripts::{find_regex, pattern_cache};

/// The maximum number of steps of a script in a text. They need about 10 ms.
pub const MAX_SCRIPT_STEPS: u64 = 2_000_000;
/// The maximum number of steps of all scripts of a page or a prompt. They need about 1 s.
pub const MAX_RUNNER_STEPS: u64 = 200_000_000;
/// The maximum length of a result, in bytes, unless the text was longer.
pub const MAX_RESULT_BYTES: usize = message_text::MAX_BYTES;

/// What stands for `{` and `<` in the text of groups while macros are expanded: macros in a text that
/// somebody else wrote are not expanded.
const PROTECTED: [(char, char); 2] = [('{', '\u{fdd0}'), ('<', '\u{fdd1}')];

/// Expands the macros of a text without side effects.
pub type ExpandMacros<'a> = dyn Fn(&str) -> Result<String, ScriptError> + 'a;

/// Applies the scripts of one page or prompt. Its memory is used again for the next text.
#[derive(Debug)]
pub struct ScriptRunner {
    matcher: Matcher,
    steps_left: u64,
}

impl Default for ScriptRunner {
    fn default() -> Self {
        Self::with_steps(MAX_RUNNER_STEPS)
    }
}

impl ScriptRunner {
    /// Creates a runner that executes at most this number of steps.
    pub fn with_steps(steps_left: u64) -> Self {
        Self {
            matcher: Matcher::default(),
            steps_left,
        }
    }

    /// Returns how many steps are left for further texts.
    pub fn steps_left(&self) -> u64 {
        self.steps_left
    }

    /// Returns the text after a script; `None` if nothing is found.
    ///
    /// # Errors
    /// Returns why the script has no effect on this text.
    pub fn apply(
        &mut self,
        script: &RegexScript,
        text: &str,
        expand: &ExpandMacros<'_>,
    ) -> Result<Option<String>, ScriptError> {
        let replacement = Replacement::parse(&script.replace_string);
        let pattern = compile(script, &replacement, expand)?;
        let searched = PatternText::new(text);
        let mut output = ScriptOutput {
            units: Vec::new(),
            n_bytes: 0,
            max_bytes: MAX_RESULT_BYTES.max(text.len()),
            next: 0,
        };
        let trim_strings = script.trim_strings.iter().map(|it| expand(it));
        let source = MatchSource {
            text: TextUnits::new(&searched, pattern.flags.unicode),
            pattern: &pattern,
            replacement: &replacement,
            trim_strings: trim_strings.collect::<Result<_, _>>()?,
            expand,
        };
        let allowed = MAX_SCRIPT_STEPS.min(self.steps_left);
        let exceeded = match allowed < MAX_SCRIPT_STEPS {
            true => ScriptError::AllTooManySteps,
            false => ScriptError::TooManySteps,
        };
        let mut left = allowed;
        let (mut n_matches, mut failure) = (0_u64, None);
        let cost = 1 + replacement.n_bytes as u64;
        let searching = self
            .matcher
            .find_each(&pattern, &searched, &mut left, |it| {
                n_matches += 1;
                let is_affordable = n_matches.saturating_mul(cost) <= allowed;
                let written = match is_affordable {
                    true => source.write(&it, &mut output),
                    false => Err(exceeded.clone()),
                };
                failure = written.err();
                match failure.is_none() && pattern.flags.global {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            });
        let spent = (allowed - left).saturating_add(n_matches.saturating_mul(cost));
        self.steps_left = self.steps_left.saturating_sub(spent);
        if let Some(failure) = failure {
            return Err(failure);
        }
        if searching.is_err() || spent > allowed {
            return Err(exceeded);
        }
        if n_matches == 0 {
            return Ok(None);
        }
        output.copy(source.text.units(output.next..usize::MAX))?;
        Ok(Some(String::from_utf16_lossy(&output.units)))
    }
}

/// Returns why the pattern of a script is invalid, if it is; `expand` inserts its macros.
pub fn check(script: &RegexScript, expand: &ExpandMacros<'_>) -> Option<ScriptError> {
    compile(script, &Replacement::parse(""), expand).err()
}

fn compile(
    script: &RegexScript,
    replacement: &Replacement,
    expand: &ExpandMacros<'_>,
) -> Result<Arc<JsPattern>, ScriptError> {
    let (source, flags) = find_regex::split(&script.find_regex);
    let needs_captures = replacement.needs_captures();
    let compiled = match script.substitute_regex {
        substitute @ (1 | 2) => {
            let source = find_regex::insert_macros(source, substitute == 2, expand)?;
            pattern_cache::compile(&source, flags, needs_captures)
        }
        _ => pattern_cache::compile(source, flags, needs_captures),
    };
    compiled.map_err(ScriptError::InvalidPattern)
}

/// The UTF-16 code units of a text, found by the positions in which a pattern counts.
struct TextUnits<'t> {
    units: &'t [u16],
    /// The position of each code point, and the end, if the pattern counts code points.
    starts: Option<Vec<usize>>,
}

impl<'t> TextUnits<'t> {
    fn new(text: &'t PatternText, is_unicode: bool) -> Self {
        let starts = is_unicode.then(|| {
            let points = text.code_points().iter();
            let ends = points.scan(0, |end, it| {
                *end += if *it > 0xffff { 2 } else { 1 };
                Some(*end)
            });
            std::iter::once(0).chain(ends).collect()
        });
        Self {
            units: text.units(),
            starts,
        }
    }

    /// Returns the units of a range; the end of the text ends every range.
    fn units(&self, range: Range<usize>) -> &'t [u16] {
        let position = |it: usize| match &self.starts {
            Some(starts) => starts.get(it).copied().unwrap_or(self.units.len()),
            None => it.min(self.units.len()),
        };
        &self.units[position(range.start)..position(range.end)]
    }
}

/// The result so far.
struct ScriptOutput {
    units: Vec<u16>,
    n_bytes: usize,
    max_bytes: usize,
    /// The position in the text up to which it was copied.
    next: usize,
}

impl ScriptOutput {
    fn copy(&mut self, units: &[u16]) -> Result<(), ScriptError> {
        // Half of a surrogate pair counts as the three bytes of the character that may replace it.
        let chars = char::decode_utf16(units.iter().copied());
        let chars = chars.map(|it| it.unwrap_or(char::REPLACEMENT_CHARACTER));
        self.n_bytes += chars.map(char::len_utf8).sum::<usize>();
        if self.n_bytes > self.max_bytes {
            return Err(ScriptError::TooLong);
        }
        self.units.extend_from_slice(units);
        Ok(())
    }
}

/// What the replacement of a match is made from.
struct MatchSource<'a> {
    text: TextUnits<'a>,
    pattern: &'a JsPattern,
    replacement: &'a Replacement,
    trim_strings: Vec<String>,
    expand: &'a ExpandMacros<'a>,
}

impl MatchSource<'_> {
    /// Writes the text before a match and its replacement.
    fn write(
        &self,
        found: &PatternMatch<'_>,
        output: &mut ScriptOutput,
    ) -> Result<(), ScriptError> {
        let range = found.range();
        output.copy(self.text.units(output.next..range.start))?;
        output.next = range.end;
        if !self.replacement.has_macros {
            for part in &self.replacement.parts {
                match part {
                    ReplacementPart::Text(text) => {
                        output.copy(&text.encode_utf16().collect::<Vec<u16>>())?;
                    }
                    part => output.copy(&self.group_text(part, found))?,
                }
            }
            return Ok(());
        }
        let mut template = String::new();
        for part in &self.replacement.parts {
            match part {
                ReplacementPart::Text(text) => template.push_str(text),
                part => {
                    let group = String::from_utf16_lossy(&self.group_text(part, found));
                    template.extend(group.chars().map(protect));
                }
            }
            if template.len() > output.max_bytes.saturating_mul(3) {
                return Err(ScriptError::TooLong);
            }
        }
        let expanded = (self.expand)(&template)?;
        let expanded: String = expanded.chars().map(unprotect).collect();
        output.copy(&expanded.encode_utf16().collect::<Vec<u16>>())
    }

    /// Returns the text of a group without the trimmed texts, and what follows its number.
    fn group_text(&self, part: &ReplacementPart, found: &PatternMatch<'_>) -> Vec<u16> {
        let n_groups = self.pattern.n_captures;
        let (range, after) = match part {
            ReplacementPart::Text(_) => (None, None),
            ReplacementPart::Match => (Some(found.range()), None),
            ReplacementPart::Name(name) => {
                let named = self.pattern.group_names.iter().filter(|it| it.0 == *name);
                let mut groups = named.map(|(_, group)| *group as usize);
                (groups.find_map(|it| found.group(it)), None)
            }
            ReplacementPart::Number(first, Some(second))
                if (1..=n_groups).contains(&(first * 10 + second)) =>
            {
                (found.group(first * 10 + second), None)
            }
            ReplacementPart::Number(0, second) => (Some(found.range()), *second),
            ReplacementPart::Number(first, second) if *first <= n_groups => {
                (found.group(*first), *second)
            }
            ReplacementPart::Number(..) => (None, None),
        };
        let units = range.map_or(&[][..], |it| self.text.units(it));
        let mut text = match self.trim_strings.is_empty() {
            true => units.to_vec(),
            false => {
                let mut text = String::from_utf16_lossy(units);
                for trimmed in self.trim_strings.iter().filter(|it| !it.is_empty()) {
                    text = text.replace(trimmed.as_str(), "");
                }
                text.encode_utf16().collect()
            }
        };
        // A digit.
        text.extend(after.map(|it| u16::from(b'0') + it as u16));
        text
    }
}

fn protect(char: char) -> char {
    let mut pairs = PROTECTED.iter();
    pairs.find(|it| it.0 == char).map_or(char, |it| it.1)
}

fn unprotect(char: char) -> char {
    let mut pairs = PROTECTED.iter();
    pairs.find(|it| it.1 == char).map_or(char, |it| it.0)
}

#[cfg(test)]
#[path = "script_runner_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "js_replace_tests.rs"]
mod js_replace_tests;
