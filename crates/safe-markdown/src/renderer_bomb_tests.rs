//! Tests that short texts which are expensive to render take little time and stay small.

use std::time::{Duration, Instant};

use super::{RenderTimeout, Renderer};
use crate::limits::{MAX_INPUT, MAX_OUTPUT};

fn filled(piece: &str) -> String {
    piece.repeat(MAX_INPUT / piece.len())
}

/// Returns texts known to be expensive for Markdown or HTML renderers, of the maximum message
/// length.
fn expensive_texts() -> Vec<(&'static str, String)> {
    let repeated = [
        ">",
        "> ",
        "- ",
        "> - ",
        "1. ",
        "[",
        "![",
        "[![",
        "[a](",
        "[a](<b",
        "[a](b\"",
        "[a][",
        "[a]: b\n",
        "[^a]",
        "**",
        "*a ",
        "*a_ ",
        "**a ",
        "_a__",
        "a*b",
        "a**b_c*",
        "***a ",
        "~~a",
        "`",
        "`a",
        "<",
        "<a",
        "<!--",
        "<?",
        "<!A ",
        "<![CDATA[",
        "</",
        "<a><",
        "&",
        "&amp;",
        "&#35;",
        "&\u{a0}",
        "\\",
        "\\\\",
        "|",
        "|-",
        "|a|\n|-|\n",
        "www.",
        "www.a.b ",
        "http://",
        "https://a.b/( ",
        "https://a.b/((((",
        "a@",
        "a@b.c ",
        "mailto:a@b.c",
        "xmpp:a@b/c",
        ":",
        "#\n",
        "# #\n",
        "    a\n",
        "\n",
        " \n",
        "- a\n",
        "- [ ] ",
        "* * *\n",
        "```\n",
        "~~~a\n",
        "\u{a0}",
        "£",
        "\u{0}",
        "\u{202e}",
        "\"",
        "'",
        "(",
        ")",
        "{",
        "漢",
        "a\u{300}",
        "=\n",
        "a\n=\n",
        "$",
        "[a]\n",
        "[ ]",
        "\r",
        "\t",
        "- \t",
        ">\t",
    ];
    let mut all: Vec<(&'static str, String)> =
        repeated.iter().map(|it| (*it, filled(it))).collect();
    let growing = |mark: &str| -> String {
        let mut text = String::new();
        let mut n = 1;
        while text.len() + n < MAX_INPUT {
            text.push_str(&mark.repeat(n));
            text.push('a');
            n += 1;
        }
        text
    };
    let deeper = |mark: &str, step: usize| -> String {
        let mut text = String::new();
        let mut n = 0;
        while text.len() + n * step + 4 < MAX_INPUT {
            text.push_str(&" ".repeat(n * step));
            text.push_str(mark);
            text.push_str("a\n");
            n += 1;
        }
        text
    };
    let half = MAX_INPUT / 2;
    all.extend([
        ("runs of backticks that grow", growing("`")),
        ("runs of stars that grow", growing("*")),
        ("runs of brackets that grow", growing("[")),
        ("lists that go deeper", deeper("- ", 2)),
        ("numbered lists that go deeper", deeper("1. ", 3)),
        ("quotes that go deeper", deeper("> ", 1)),
        ("opened and closed", "[".repeat(half) + &"]".repeat(half)),
        (
            "asterisks and underscores",
            "*_".repeat(half / 2) + &"_*".repeat(half / 2),
        ),
        (
            "nested images",
            "![".repeat(30) + "a" + &"](https://a.b)".repeat(30),
        ),
        (
            "a table of the maximum width",
            format!(
                "{}\n{}\n{}",
                "|a".repeat(8_000),
                "|-".repeat(8_000),
                "|\n".repeat(8_000)
            ),
        ),
        ("tables side by side", "|a|b|\n|-|-|\n|\n\n".repeat(3_000)),
        ("one long word", filled("a")),
        (
            "one link definition used by all links",
            format!(
                "[a]: https://a.b/{}\n\n{}",
                "x".repeat(30_000),
                "[a] ".repeat(8_000)
            ),
        ),
        (
            "long links",
            filled(&format!("[a](https://a.b/{}) ", "x".repeat(100))),
        ),
        ("quotes in lists in quotes", filled("> - > - > - > - a\n")),
        ("half-open HTML", filled("<a href=\"")),
        ("comments never closed", format!("<!--{}", filled("-"))),
        ("every other line a table", filled("a|b\n-|-\n1|2\nx\n\n")),
        ("a fence in each quote", filled("> ```\n")),
        (
            "lazy lines",
            format!("{}\n{}", "> ".repeat(30), "a\n".repeat(30_000)),
        ),
        (
            "emphasis 32 deep",
            "*a **b ".repeat(16) + &" b** a*".repeat(16),
        ),
        ("digits", filled("1")),
        ("numbers that begin lists", filled("999999999. a\n")),
    ]);
    all
}

/// Far above the slowest accepted text (a tenth of a second), also on a busy machine, and below the
/// time without limits: fifty thousand nested quotes need ten seconds.
const MAX_RENDER_TIME: Duration = Duration::from_secs(5);

#[test]
fn expensive_texts_render_quickly_and_stay_small() {
    let mut slowest = (Duration::ZERO, "");
    for (what, text) in expensive_texts() {
        let text = &text[..text.floor_char_boundary(MAX_INPUT)];
        // Effectively no timeout, because this test is about the other limits.
        let renderer = Renderer::with_time_limit(Duration::from_secs(3_600));
        let began = Instant::now();

        let html = renderer.render(text).expect("an hour is enough");

        slowest = slowest.max((began.elapsed(), what));
        assert!(html.len() <= MAX_OUTPUT, "{what}: {}", html.len());
    }
    eprintln!(
        "the slowest of {} took {slowest:?}",
        expensive_texts().len()
    );
    assert!(slowest.0 < MAX_RENDER_TIME, "{slowest:?}");
}

#[test]
fn a_text_that_exceeds_the_time_limit_is_an_error() {
    let renderer = Renderer::with_time_limit(Duration::ZERO);

    assert_eq!(renderer.render("*a*"), Err(RenderTimeout));
}
