//! Checks whether a text is within the limits of the Markdown renderer, so that rendering is fast
//! and the HTML small.
//!
//! A few kilobytes can produce megabytes of HTML (tables) or need seconds (thousands of nested
//! quotes). A text over a limit is shown as plain text, so the limits are far above what users and
//! models write.

/// Maximum length of a rendered text in bytes.
pub const MAX_INPUT: usize = 64 * 1024;
/// Maximum length of the resulting HTML in bytes.
pub const MAX_OUTPUT: usize = 512 * 1024;
/// Maximum nesting of quotes, lists and brackets.
const MAX_DEPTH: usize = 32;
/// Maximum number of cells in a table; short rows are padded to its width.
const MAX_CELLS: usize = 20_000;
/// Maximum number of characters for which the sanitizer scans the rest of the text.
const MAX_LOOKAHEAD_CHARS: usize = 8_000;
/// Minimum indentation of a list level in spaces.
const LIST_INDENT: usize = 2;

/// Returns whether the text is within all limits.
pub fn is_within_limits(text: &str) -> bool {
    text.len() <= MAX_INPUT
        && text.lines().all(|line| block_depth(line) <= MAX_DEPTH)
        && bracket_depth(text) <= MAX_DEPTH
        && max_table_cells(text) <= MAX_CELLS
        && count_lookahead_chars(text) <= MAX_LOOKAHEAD_CHARS
}

/// Returns an upper bound of the nesting of quotes and lists on this line.
fn block_depth(line: &str) -> usize {
    let mut depth = 0;
    let mut rest = line;
    loop {
        let trimmed = rest.trim_start_matches([' ', '\t']);
        let indent = rest.len() - trimmed.len();
        let Some(after) = after_marker(trimmed) else {
            return depth;
        };
        depth += 1 + indent / LIST_INDENT;
        rest = after;
    }
}

/// Returns what follows the marker of a quote or list item, if the line begins with one.
fn after_marker(line: &str) -> Option<&str> {
    if let Some(after) = line.strip_prefix('>') {
        return Some(after);
    }
    let after = match line.strip_prefix(['-', '*', '+']) {
        Some(after) => after,
        None => line
            .trim_start_matches(|it: char| it.is_ascii_digit())
            .strip_prefix(['.', ')'])?,
    };
    (after.is_empty() || after.starts_with([' ', '\t'])).then_some(after)
}

/// Returns the maximum number of open brackets within a paragraph.
fn bracket_depth(text: &str) -> usize {
    let (mut open, mut deepest) = (0_usize, 0);
    for line in text.lines() {
        if line.trim().is_empty() {
            open = 0;
        }
        for byte in line.bytes() {
            match byte {
                b'[' => open += 1,
                b']' => open = open.saturating_sub(1),
                _ => {}
            }
            deepest = deepest.max(open);
        }
    }
    deepest
}

/// Returns an upper bound of the cells in a table of the text: the columns of each line that could
/// separate header and body, times the number of lines up to the next blank one.
fn max_table_cells(text: &str) -> usize {
    let mut max_cells = 0;
    let mut n_columns = 0_usize;
    let mut n_rows = 0_usize;
    for line in text.lines() {
        if line.trim().is_empty() {
            n_columns = 0;
            continue;
        }
        n_rows += 1;
        let width = separator_columns(line);
        if width > n_columns {
            (n_columns, n_rows) = (width, 1);
        }
        max_cells = max_cells.max(n_columns.saturating_mul(n_rows));
    }
    max_cells
}

/// Returns the number of columns of a line like `|---|:-:|`, also inside quotes and lists; 0 for
/// any other line.
fn separator_columns(line: &str) -> usize {
    let is_rule = line.contains('-')
        && line
            .bytes()
            .all(|it| matches!(it, b'|' | b'-' | b':' | b' ' | b'\t' | b'>' | b'*' | b'+'));
    match is_rule {
        true => line.bytes().filter(|it| *it == b'|').count() + 1,
        false => 0,
    }
}

/// Counts ampersands, and characters with the same first byte as a no-break space: the HTML
/// serializer searches the rest of the text for quotes at each of them.
fn count_lookahead_chars(text: &str) -> usize {
    text.bytes().filter(|it| matches!(it, b'&' | 0xC2)).count()
}
