//! What a text may ask of the Markdown renderer, looked at before it is asked.
//!
//! A few kilobytes can become megabytes (tables) or seconds (thousands of nested quotes). What is
//! past a limit is shown plain, so these are far above what people and models write.

/// The longest text that is rendered, in bytes.
pub const MAX_INPUT: usize = 64 * 1024;
/// The longest HTML that is kept, in bytes.
pub const MAX_OUTPUT: usize = 512 * 1024;
/// How deep quotes, lists and brackets may stand inside each other.
const MAX_DEPTH: usize = 32;
/// How many cells a table may have; short rows are filled up to its width.
const MAX_CELLS: usize = 20_000;
/// How many characters there may be for which the sanitizer looks ahead through the whole text.
const MAX_LOOKAHEAD_CHARS: usize = 8_000;
/// The width of a level of a list, in spaces, at its narrowest.
const LIST_INDENT: usize = 2;

/// Is this text cheap enough to be rendered?
pub fn is_within_limits(text: &str) -> bool {
    text.len() <= MAX_INPUT
        && text.lines().all(|line| block_depth(line) <= MAX_DEPTH)
        && bracket_depth(text) <= MAX_DEPTH
        && max_table_cells(text) <= MAX_CELLS
        && count_lookahead_chars(text) <= MAX_LOOKAHEAD_CHARS
}

/// How many quotes and lists this line opens or stands in, at most.
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

/// What follows the marker of a quote or a list item, if the line begins with one.
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

/// How many brackets are open at once within a paragraph, at most.
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

/// The cells of the largest table that may be in the text: each line that could be the rule under
/// a heading, times the lines down to the next blank one.
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

/// The columns of a line like `|---|:-:|`, wherever it stands; 0 for any other line.
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

/// Ampersands, and the letters whose first byte is that of a no-break space: the writer of HTML
/// searches the rest of the text for quotes at each of them.
fn count_lookahead_chars(text: &str) -> usize {
    text.bytes().filter(|it| matches!(it, b'&' | 0xC2)).count()
}
