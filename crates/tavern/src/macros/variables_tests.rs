//! Tests of variables in macros: their macros, the short forms, and when they are not set.

use crate::macros::bindings::{Bindings, BoundText};
use crate::macros::evaluation::case_fixture::{assert_all, bindings, environment};
use crate::macros::expansion::expand;

#[test]
fn variables() {
    assert_all(&[
        ("{{getvar::hat}}", "red"),
        ("{{getvar::none}}", ""),
        ("{{setvar::x::1}}{{getvar::x}}", "1"),
        ("{{setvar::x::}}[{{getvar::x}}]{{hasvar::x}}", "[]true"),
        ("{{addvar::n::2}}{{getvar::n}}", "5"),
        ("{{addvar::n::0.5}}{{getvar::n}}", "3.5"),
        ("{{addvar::hat::dish}}{{getvar::hat}}", "reddish"),
        ("{{addvar::new::a}}{{getvar::new}}", "a"),
        (
            "{{addvar::bag::lamp}}{{getvar::bag}}",
            "[\"rope\",2,\"lamp\"]",
        ),
        ("{{incvar::n}}", "4"),
        ("{{decvar::n}}", "2"),
        ("{{incvar::new}}{{incvar::new}}", "12"),
        ("{{decvar::new}}", "-1"),
        ("{{hasvar::hat}}{{varexists::none}}", "truefalse"),
        ("{{deletevar::hat}}{{hasvar::hat}}", "false"),
        ("{{flushvar::hat}}[{{getvar::hat}}]", "[]"),
        ("{{getvarkey::map::hat}}{{getvarkey::bag::1}}", "red2"),
        ("{{getvarkey::map::none}}", ""),
        (
            "{{setvarkey::map::n::1}}{{getvar::map}}",
            "{\"hat\":\"red\",\"n\":1}",
        ),
        ("{{setvarkey::new::k::v}}{{getvarkey::new::k}}", "v"),
        ("{{getglobalvar::world}}", "Mars"),
        (
            "{{setglobalvar::x::1}}{{getglobalvar::x}}{{hasvar::x}}",
            "1false",
        ),
        (
            "{{addglobalvar::n::1}}{{getglobalvar::n}}{{getvar::n}}",
            "113",
        ),
        ("{{incglobalvar::n}}", "11"),
        ("{{decglobalvar::n}}", "9"),
        (
            "{{hasglobalvar::world}}{{globalvarexists::hat}}",
            "truefalse",
        ),
        (
            "{{deleteglobalvar::world}}{{globalvarexists::world}}",
            "false",
        ),
        ("{{flushglobalvar::world}}[{{getglobalvar::world}}]", "[]"),
        ("{{setglobalvarkey::g::k::v}}{{getglobalvarkey::g::k}}", "v"),
    ]);
}

#[test]
fn short_forms() {
    assert_all(&[
        ("{{.hat}}", "red"),
        ("{{ .hat }}", "red"),
        ("{{$world}}", "Mars"),
        ("{{.none}}", ""),
        ("{{.x = a b}}[{{.x}}]", "[a b]"),
        ("{{.x={{char}}}}{{.x}}", "Ada"),
        ("{{.x = a::b}}{{.x}}", "a::b"),
        ("{{.x =}}[{{.x}}]{{hasvar::x}}", "[]true"),
        ("{{$x = 1}}{{$x}}{{hasvar::x}}", "1false"),
        ("{{.n += 2}}{{.n}}", "5"),
        ("{{.hat += dish}}{{.hat}}", "reddish"),
        ("{{.n -= 2}}{{.n}}", "1"),
        ("{{.hat -= 2}}{{.hat}}", "red"),
        ("{{.n++}}{{.n}}", "44"),
        ("{{.n--}}{{.n}}", "22"),
        ("{{$n++}}", "11"),
        ("{{.hat || Guest}}", "red"),
        ("{{.off || Guest}}", "Guest"),
        ("{{.none || {{user}}}}", "Bob"),
        ("{{.blank ?? x}}", ""),
        ("{{.none ?? x}}", "x"),
        ("{{.off ||= x}}{{.off}}", "xx"),
        ("{{.hat ||= x}}{{.hat}}", "redred"),
        ("{{.none ??= x}}{{.none}}", "xx"),
        ("{{.blank ??= x}}[{{.blank}}]", "[]"),
        ("{{.n == 3.0}}{{.hat == red}}", "truetrue"),
        ("{{.n != 3}}{{.hat != Red}}", "falsetrue"),
        ("{{.n < 20}}{{.n <= 3}}", "truetrue"),
        ("{{.n > 20}}{{.n >= 3}}", "falsetrue"),
        ("{{.hat < z}}", "true"),
        ("{{.my-var = 1}}{{.my-var}}", "1"),
        ("{{.my_var2=1}}{{.my_var2--}}", "0"),
        ("{{.2}}", "{{.2}}"),
        ("{{. }}", "{{. }}"),
        ("{{.n x}}", "{{.n x}}"),
        ("{{.n++ 1}}", "{{.n++ 1}}"),
        ("{{.n::x}}", "{{.n::x}}"),
    ]);
}

#[test]
fn variables_can_be_discarded() {
    let environment = environment();

    let out = environment.without_variables(|| {
        expand(
            "{{setvar::x::1}}{{deletevar::hat}}{{.x}}",
            &bindings(),
            &environment,
        )
    });

    assert_eq!(out, "1");
    assert!(environment.variables.borrow().changes.is_empty());
    assert_eq!(expand("{{.x}}{{.hat}}", &bindings(), &environment), "red");
}

#[test]
fn the_text_of_a_person_sets_no_variables() {
    let with_persona = Bindings {
        persona: BoundText::OfPerson("{{setvar::hat::blue}}{{.hat}} on {{user}}".into()),
        ..bindings()
    };

    let out = expand("{{persona}}, {{.hat}}", &with_persona, &environment());

    assert_eq!(out, "blue on Bob, red");
}
