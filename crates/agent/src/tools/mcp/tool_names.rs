//! Builds the names under which models call the tools of MCP servers: valid in every provider API,
//! and shortened with a hash if necessary.

use sha2::{Digest, Sha256};

/// Maximum length of a name that every provider API accepts.
const MAX_NAME_BYTES: usize = 64;

/// Returns the name under which a model calls a tool of a server.
pub fn model_facing_name(label: &str, name: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    let full = format!("mcp_{label}_{name}");
    if full.len() <= MAX_NAME_BYTES && full.chars().all(is_plain) {
        return full;
    }
    let plain = full.chars().map(|it| if is_plain(it) { it } else { '_' });
    let plain: String = plain.take(MAX_NAME_BYTES - 9).collect();
    let mark = hex::encode(Sha256::digest(full.as_bytes()));
    format!("{plain}_{}", &mark[..8])
}

#[cfg(test)]
mod tests {
    use super::model_facing_name;

    #[test]
    fn names_are_valid_for_every_api_and_stay_distinct() {
        assert_eq!(model_facing_name("wiki", "search"), "mcp_wiki_search");
        let long = "x".repeat(100);
        let names = [
            model_facing_name("wiki", &long),
            model_facing_name("wiki", "a b"),
            model_facing_name("wiki", "a/b"),
        ];

        for name in &names {
            let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '_';
            assert!(name.len() <= 64 && name.chars().all(is_plain), "{name}");
        }
        assert_ne!(names[1], names[2]);
    }
}
