//! Tests of the syntax of macros: names, arguments, nesting, blocks, conditions.

use crate::macros::bindings::Bindings;
use crate::macros::evaluation::case_fixture::{assert_all, bindings, environment, expanded};
use crate::macros::expansion::expand;
use crate::macros::variables::VariableScope;

#[test]
fn names_are_case_insensitive_and_white_space_is_ignored() {
    assert_all(&[
        ("{{User}}", "Bob"),
        ("{{USER}}", "Bob"),
        ("{{ user }}", "Bob"),
        ("{{\tuser\n}}", "Bob"),
        ("{{ getvar :: hat }}", "red"),
        ("{{ setvar :: x :: a b }}[{{ getvar :: x }}]", "[a b]"),
        ("{{ getvar hat }}", "red"),
        ("{{ getvar : hat }}", "red"),
        ("{{getvar:hat}}", "red"),
        ("{{GETVAR::hat}}", "red"),
        ("{{setvar::x::{{space}}}}[{{getvar::x}}]", "[ ]"),
    ]);
}

#[test]
fn macros_nest() {
    assert_all(&[
        ("{{reverse::{{char}}}}", "adA"),
        ("{{reverse::{{reverse::{{char}}}}}}", "Ada"),
        (
            "{{setvar::{{char}}_mood::glad}}{{getvar::{{char}}_mood}}",
            "glad",
        ),
        (
            "{{setvar::x::Hello, {{user}}!}}{{getvar::x}}",
            "Hello, Bob!",
        ),
        ("{{getvar::{{reverse::tah}}}}", "red"),
        ("{{reverse::{{incvar::n}}{{incvar::n}}}}", "54"),
        ("{{getvar {{reverse::tah}}}}", "red"),
        ("{{reverse::<USER>}}", "boB"),
    ]);
}

#[test]
fn what_is_not_a_macro_is_left_as_it_is() {
    let same = [
        "",
        "plain",
        "{{unknown}}",
        "{{unknown::a::b}}",
        "{{user::x}}",
        "{{}}",
        "{{ }}",
        "{{\"a\": 1}}",
        "{{char",
        "char}}",
        "{",
        "}}",
        "<",
        "<div>",
        "a < b > c",
        "<user",
        "{{!char}}",
        "{{?char}}",
        "{{~char}}",
        "{{>char}}",
        "{{/if}}",
        "{{else}}",
        "{{/setvar}}",
        "{{setvar::x}}",
        "{{setvar::x::a::b}}",
        "{{reverse::a::b}}",
        "{{getvar}}",
        "{{if}}",
        "{{if 1}}",
        "{{if 1}}a",
        "{{if}}a{{/if}}",
        "{{角色}}",
        "a::b \\ c",
    ];
    let cases: Vec<(&str, &str)> = same.iter().map(|it| (*it, *it)).collect();

    assert_all(&cases);
    assert_all(&[
        ("{{other::{{char}}::b}}", "{{other::Ada::b}}"),
        ("{{!x {{char}}}}", "{{!x Ada}}"),
        ("{{char {{user}}", "{{char Bob"),
        ("{{a::{{char}}::", "{{a::Ada::"),
        ("{{{char}}}", "{Ada}"),
        ("{{{{char}}}}", "{{Ada}}"),
        ("漢{{char}}🦊{", "漢Ada🦊{"),
        (
            "{{unknown}}{{char}}{{/unknown}}",
            "{{unknown}}Ada{{/unknown}}",
        ),
        ("{{user}} {{/user}}", "Bob {{/user}}"),
    ]);
}

#[test]
fn escaped_braces_are_literal() {
    assert_all(&[
        ("\\{\\{char\\}\\}", "{{char}}"),
        ("\\{{{char}}\\}", "{Ada}"),
        ("\\{{char}}", "{{char}}"),
        ("{{reverse::\\{a\\}}}", "}a{"),
        (
            "{{setvar::j::\\{\"a\":\\{\\}\\}}}{{getvar::j}}",
            "{\"a\":{}}",
        ),
        ("\\n \\ \\\\", "\\n \\ \\\\"),
    ]);
}

#[test]
fn macros_in_names_are_not_expanded() {
    let tricky = Bindings {
        user: "{{char}} <BOT>".into(),
        ..bindings()
    };

    assert_eq!(
        expand("{{user}}", &tricky, &environment()),
        "{{char}} <BOT>"
    );
}

#[test]
fn a_block_is_the_last_argument() {
    assert_all(&[
        ("{{setvar::x}}text{{/setvar}}{{getvar::x}}", "text"),
        ("{{setvar x}}\n  text\n{{/setvar}}[{{getvar::x}}]", "[text]"),
        (
            "{{#setvar::x}}\n text {{/setvar}}[{{getvar::x}}]",
            "[\n text ]",
        ),
        ("{{ # setvar x }} a {{ / setvar }}[{{getvar::x}}]", "[ a ]"),
        ("{{reverse}}abc{{/reverse}}", "cba"),
        (
            "{{ reverse }}\n  Hello World\n{{ /reverse }}",
            "dlroW olleH",
        ),
        ("{{REVERSE}}{{char}}{{/Reverse}}", "adA"),
        ("{{trim}} a\n{{/trim}}b", "ab"),
        ("{{addvar::hat}}dish{{/addvar}}{{getvar::hat}}", "reddish"),
        ("{{random}}a,a{{/random}}", "a"),
        ("{{random::a}}a{{/random}}", "a"),
        (
            "{{setvar::x}}a{{reverse}}bc{{/reverse}}{{/setvar}}{{getvar::x}}",
            "acb",
        ),
        (
            "{{setvar::x}}1{{setvar::y}}2{{/setvar}}3{{/setvar}}{{getvar::x}}{{getvar::y}}",
            "132",
        ),
        (
            "{{setvar::x}}{{setvar::y::2}}3{{/setvar}}{{getvar::x}}{{getvar::y}}",
            "32",
        ),
        (
            "{{setvarkey::map::coat}}blue{{/setvarkey}}{{getvarkey::map::coat}}",
            "blue",
        ),
        ("{{getvar}}hat{{/getvar}}", "red"),
        ("{{reverse::{{setvar::x}}a{{/setvar}}bc}}", "cb"),
        ("{{setvar::x}}a{{/reverse}}", "{{setvar::x}}a{{/reverse}}"),
        ("{{setvar::x}}{{reverse}}ab{{/reverse}}", "{{setvar::x}}ba"),
        ("{{reverse}}a{{newline}}b{{/reverse}}", "b\na"),
        ("{{setvar}}a{{/setvar}}", "{{setvar}}a{{/setvar}}"),
        (
            "{{comment}}{{setvar::x::1}}{{/comment}}{{hasvar::x}}",
            "false",
        ),
    ]);
}

#[test]
fn comments_send_and_do_nothing() {
    assert_all(&[
        ("a{{//}} b {{char}} {{///}}c", "ac"),
        ("a{{ // }}\n b\n{{ /// }}c", "ac"),
        ("a{{// x}} b {{///}}c", "ac"),
        ("a{{//}}b", "ab"),
        ("a{{// {{setvar::x::1}} }}{{hasvar::x}}", "afalse"),
        ("a{{//}}{{setvar::x::1}}{{///}}{{hasvar::x}}", "afalse"),
        ("a{{/// not an end}}b", "ab"),
        ("a{{///}}b", "a{{///}}b"),
        ("a{{// 1 :: 2 : 3 }}b", "ab"),
    ]);
    let long = format!("a{{{{// {}}}}}b", "page ".repeat(1_000));
    assert_eq!(expanded(&long), "ab");
}

#[test]
fn a_condition_chooses_one_branch() {
    assert_all(&[
        ("{{if 1}}a{{else}}b{{/if}}", "a"),
        ("{{if 0}}a{{else}}b{{/if}}", "b"),
        ("{{if false}}a{{else}}b{{/if}}", "b"),
        ("{{if FALSE}}a{{else}}b{{/if}}", "b"),
        ("{{if off}}a{{else}}b{{/if}}", "b"),
        ("{{if no}}a{{else}}b{{/if}}", "a"),
        ("{{if::}}a{{else}}b{{/if}}", "b"),
        ("{{if::0}}a{{/if}}c", "c"),
        ("{{if:1}}a{{/if}}", "a"),
        ("{{if some text}}a{{else}}b{{/if}}", "a"),
        ("{{if !0}}a{{else}}b{{/if}}", "a"),
        ("{{if !1}}a{{else}}b{{/if}}", "b"),
        ("{{if !!1}}a{{else}}b{{/if}}", "a"),
        ("{{if ! {{getvar::hat}}}}a{{else}}b{{/if}}", "b"),
        ("{{if {{getvar::hat}}}}a{{else}}b{{/if}}", "a"),
        ("{{if {{getvar::none}}}}a{{else}}b{{/if}}", "b"),
        ("{{IF description}}a{{ELSE}}b{{/IF}}", "a"),
        ("{{if !scenario}}a{{else}}b{{/if}}", "b"),
        ("{{if charAuthorsNote}}a{{else}}b{{/if}}", "a"),
        ("{{if chatStart}}a{{else}}b{{/if}}", "b"),
        ("{{if .hat}}a{{else}}b{{/if}}", "a"),
        ("{{if .off}}a{{else}}b{{/if}}", "b"),
        ("{{if .none}}a{{else}}b{{/if}}", "b"),
        ("{{if !.none}}a{{else}}b{{/if}}", "a"),
        ("{{if $world}}a{{else}}b{{/if}}", "a"),
        ("{{if $none}}a{{else}}b{{/if}}", "b"),
        ("{{if {{.n > 2}}}}a{{else}}b{{/if}}", "a"),
        ("{{if::1::a}}", "a"),
        ("{{if::0::a}}", ""),
        ("{{if::.hat::a{{else}}b}}", "a"),
        ("{{if::.none::a{{else}}b}}", "b"),
        ("{{if 1}}{{if 0}}a{{else}}b{{/if}}{{else}}c{{/if}}", "b"),
        ("{{if 0}}{{if 0}}a{{else}}b{{/if}}{{else}}c{{/if}}", "c"),
        (
            "{{if 1}}{{reverse}}a{{else}}b{{/reverse}}{{/if}}",
            "b}}esle{{a",
        ),
        ("{{if 1}}{{newline}}a{{else}}b{{/if}}", "a"),
        ("{{if 1}}a{{else}}{{char}}", "{{if 1}}a{{else}}Ada"),
        ("{{if 1}}\n  # A\n    {{char}}\n{{/if}}", "# A\n  Ada"),
        ("{{#if 1}}\n a {{/if}}", "\n a "),
        ("{{random::{{if 1}}x{{/if}}}}", "x"),
        (
            "{{if}}{{char}}{{else}}{{user}}{{/if}}",
            "{{if}}Ada{{else}}Bob{{/if}}",
        ),
    ]);
}

#[test]
fn a_branch_that_is_not_chosen_has_no_effect() {
    assert_all(&[
        ("{{if 0}}{{setvar::y::1}}{{/if}}{{hasvar::y}}", "false"),
        (
            "{{if 1}}{{else}}{{setvar::y::1}}{{/if}}{{hasvar::y}}",
            "false",
        ),
        ("{{if::0::{{setvar::y::1}}}}{{hasvar::y}}", "false"),
        (
            "{{if::1::a{{else}}{{setvar::y::1}}}}{{hasvar::y}}",
            "afalse",
        ),
        ("{{.hat || {{incvar::n}}}}{{.n}}", "red3"),
        ("{{.hat ?? {{incvar::n}}}}{{.n}}", "red3"),
        ("{{.hat ??= {{incvar::n}}}}{{.n}}", "red3"),
        ("{{.hat ||= {{incvar::n}}}}{{.n}}", "red3"),
    ]);
}

#[test]
fn a_value_is_not_taken_for_a_condition() {
    let environment = environment();
    let mut variables = environment.variables.borrow_mut();
    variables.set(VariableScope::Conversation, "a", "!1");
    variables.set(VariableScope::Conversation, "b", "chatStart");
    drop(variables);

    let text = "{{if {{.a}}}}1{{/if}}{{if {{.b}}}}2{{/if}}";

    assert_eq!(expand(text, &bindings(), &environment), "12");
}
