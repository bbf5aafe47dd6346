//! The limits of untrusted documents, and the count of depth and values before parsing.

/// The maximum size of a document, in bytes.
pub const MAX_BYTES: usize = 5 * 1024 * 1024;
/// A document nested this deep is refused; it is also the limit of the JSON parser.
pub const MAX_DEPTH: usize = 128;
/// The maximum number of values, because a parsed small number needs thirty times the size of its
/// text.
pub const MAX_VALUES: usize = 250_000;
/// The memory of an object with one field, as a number of values.
pub const VALUES_PER_OBJECT: usize = 6;

/// Returns the nesting depth of a JSON text, and its memory as a number of values: an object counts
/// as several.
pub fn count_depth_and_values(text: &[u8]) -> (usize, usize) {
    let (mut depth, mut deepest, mut n_values) = (0_usize, 0_usize, 0_usize);
    let (mut in_text, mut escaped) = (false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
                n_values += if *byte == b'{' { VALUES_PER_OBJECT } else { 1 };
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' => n_values += 1,
            _ => {}
        }
    }
    (deepest, n_values)
}
