//! Shows a text without Markdown: every character as it was typed.

/// Returns the text as typed, line by line, as a paragraph of HTML.
pub fn plain_html(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(escape).collect();
    format!("<p>{}</p>", lines.join("<br>\n"))
}

/// Escapes the characters that have a special meaning in HTML.
pub(crate) fn escape(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            '\0' => html.push('\u{FFFD}'),
            _ => html.push(letter),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::plain_html;

    #[test]
    fn plain_text_is_escaped_line_by_line() {
        assert_eq!(
            plain_html("a <b>\n\"c\" & 'd'\n"),
            "<p>a &lt;b&gt;<br>\n&quot;c&quot; &amp; &#39;d&#39;</p>"
        );
    }
}
