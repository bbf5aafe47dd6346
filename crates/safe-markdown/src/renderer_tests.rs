//! Tests of the HTML of common Markdown.

use super::Renderer;

fn html(text: &str) -> String {
    let html = Renderer::default().render(text);
    let html = html.expect("a short text is rendered in time");
    html.trim_end().to_owned()
}

/// Returns the visible text: without tags, entities resolved.
pub fn visible(html: &str) -> String {
    let mut text = String::new();
    let mut in_tag = false;
    for letter in html.chars() {
        match letter {
            '<' => in_tag = true,
            '>' => in_tag = false,
            _ if in_tag => {}
            _ => text.push(letter),
        }
    }
    let entities = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&nbsp;", "\u{A0}"),
        ("&amp;", "&"),
    ];
    entities
        .iter()
        .fold(text, |text, (entity, letter)| text.replace(entity, letter))
}

#[test]
fn common_markup_is_rendered() {
    assert_eq!(
        html("*waves* and **shouts**"),
        "<p><em>waves</em> and <strong>shouts</strong></p>"
    );
    assert_eq!(
        html("~~no~~ `code`"),
        "<p><del>no</del> <code>code</code></p>"
    );
    assert_eq!(html("# Title"), "<h1>Title</h1>");
    assert_eq!(html("> quote"), "<blockquote>\n<p>quote</p>\n</blockquote>");
    assert_eq!(
        html("3. three\n4. four"),
        "<ol start=\"3\">\n<li>three</li>\n<li>four</li>\n</ol>"
    );
    assert_eq!(
        html("```rust\nlet a = 1;\n```"),
        "<pre><code>let a = 1;\n</code></pre>"
    );
}

#[test]
fn a_single_line_break_is_kept() {
    assert_eq!(
        html("one\ntwo\n\nthree"),
        "<p>one<br>\ntwo</p>\n<p>three</p>"
    );
}

#[test]
fn a_line_of_dashes_is_a_scene_break() {
    assert_eq!(
        html("Later.\n---\nNight."),
        "<p>Later.</p>\n<hr>\n<p>Night.</p>"
    );
}

#[test]
fn tables_and_tasks_are_rendered() {
    let table = html("| a | b |\n|:-:|--:|\n| 1 | 2 |");
    assert!(table.contains("<th align=\"center\">a</th>"), "{table}");
    assert!(table.contains("<td align=\"right\">2</td>"), "{table}");
    let tasks = html("- [x] done\n- [ ] open");
    assert!(
        tasks.contains("<input type=\"checkbox\" checked=\"\" disabled=\"\">"),
        "{tasks}"
    );
    assert_eq!(tasks.matches("disabled").count(), 2);
}

#[test]
fn links_open_in_a_new_tab_without_a_referrer() {
    for text in [
        "https://example.org/a?b=1&c=2",
        "[x](https://example.org/a?b=1&c=2)",
        "<https://example.org/a?b=1&c=2>",
    ] {
        let html = html(text);

        assert!(
            html.contains("href=\"https://example.org/a?b=1&amp;c=2\""),
            "{html}"
        );
        assert!(html.contains("target=\"_blank\""), "{html}");
        assert!(
            html.contains("rel=\"noopener noreferrer nofollow ugc\""),
            "{html}"
        );
    }
    assert!(html("www.example.org").contains("href=\"http://www.example.org\""));
    assert!(html("ann@example.org").contains("href=\"mailto:ann@example.org\""));
}

#[test]
fn links_to_this_server_are_text() {
    for text in [
        "[x](/logout)",
        "[x](logout)",
        "[x](//evil.example)",
        "[x](#top)",
        "[x](?a=1)",
    ] {
        assert!(!html(text).contains("href"), "{text}");
    }
}

#[test]
fn a_picture_becomes_a_link() {
    let picture = html("![a cat](https://example.org/cat.png \"title\")");
    assert!(
        picture.contains("<a class=\"external-image\" href=\"https://example.org/cat.png\""),
        "{picture}"
    );
    assert_eq!(visible(&picture), "a cat");
    let nameless = html("![](HTTPS://example.org/cat.png)");
    assert_eq!(visible(&nameless), "HTTPS://example.org/cat.png");
    let linked = html("[![a `b` *c*](https://example.org/cat.png)](https://example.org)");
    assert_eq!(linked.matches("<a ").count(), 1, "{linked}");
    assert_eq!(visible(&linked), "a b c");
    assert!(!html("[![x](https://example.org/cat.png)](/x)").contains("href"));
    for text in [
        "![x](data:image/png;base64,AAAA)",
        "![x](/api/me)",
        "![x](javascript:alert(1))",
    ] {
        assert_eq!(html(text), "<p>x</p>", "{text}");
    }
}

#[test]
fn text_that_looks_like_html_stays_readable() {
    for text in [
        "Vec<String>",
        "I <3 you",
        "5 > 3 && 2 < 4",
        "<b>bold</b>",
        "<script>alert(1)</script>",
        "a & b &amp; c",
        "\"quoted\" and 'single'",
        "<!-- hidden? -->",
        "<thinking>hm</thinking>",
        "</p>",
    ] {
        let resolved = text.replace("&amp;", "&");
        assert_eq!(visible(&html(text)), resolved, "{text}");
    }
}

#[test]
fn plain_text_is_unchanged_in_every_script() {
    for text in [
        "Hello there!",
        "Привет, мир.",
        "你好，世界。",
        "こんにちは「世界」",
        "مرحبا بالعالم",
        "สวัสดี",
        "🦊 and 👩\u{200D}🚀",
        "C:\\path\\file",
        "snake_case_name",
        "2 * 3 * 4",
        "a\u{A0}b",
        "\u{202E}abc\u{202C}",
        "#tag",
        "100%",
        "$5 and $6",
        "(brackets) [not a link] {braces}",
        "Hi~ you~",
    ] {
        assert_eq!(visible(&html(text)), text);
    }
}

#[test]
fn empty_text_becomes_empty_html() {
    assert_eq!(html(""), "");
    assert_eq!(html(" \n\n "), "");
}
