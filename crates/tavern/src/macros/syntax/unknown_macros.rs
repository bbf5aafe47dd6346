//! Finds the macros of a text that are left as they are: those without a meaning, and those with too
//! few or too many arguments.

use std::collections::BTreeSet;

use crate::import_warning::ImportWarning;
use crate::macros::syntax::names;
use crate::macros::syntax::names::COMMENT;
use crate::macros::syntax::parser::parse;
use crate::macros::syntax::tree::{MacroCall, MacroNode};

/// The maximum length of a name, in characters; the rest of a longer one is left out.
const MAX_NAME_CHARS: usize = 64;
/// The maximum number of names in a warning.
const MAX_NAMES: usize = 10;

/// Returns the names of unknown macros, as written, each once. Empty for a text beyond the limits.
pub fn find(text: &str) -> BTreeSet<String> {
    let mut unknown = BTreeSet::new();
    add_all(&parse(text).unwrap_or_default(), &mut unknown);
    unknown
}

/// Returns a warning that lists the unknown macros of a field of an imported file.
pub fn warning(field: &str, text: &str) -> Option<ImportWarning> {
    let found = find(text);
    let names: Vec<String> = found.iter().map(|it| format!("{{{{{it}}}}}")).collect();
    let mut names = names[..names.len().min(MAX_NAMES)].join(", ");
    if found.len() > MAX_NAMES {
        names += ", …";
    }
    let sentence =
        format!("`{field}` contains unknown macros, which are sent as they are: {names}.");
    let warning = ImportWarning::new("macros_unknown", sentence);
    (!found.is_empty()).then(|| warning.with("field", field).with("names", names))
}

fn add_all(nodes: &[MacroNode<'_>], unknown: &mut BTreeSet<String>) {
    for node in nodes {
        if let MacroNode::Macro(call) = node {
            add(call, unknown);
        }
    }
}

fn add(call: &MacroCall<'_>, unknown: &mut BTreeSet<String>) {
    let head = call.head();
    let spec = head.and_then(|it| names::find(it.name).filter(|_| !it.is_closing));
    if spec.is_some_and(|it| it.name == COMMENT) {
        return;
    }
    let is_known = match (spec, call.short_form()) {
        (Some(spec), _) => (spec.min_args..=spec.max_args).contains(&call.n_args()),
        (None, Some(form)) => form.needs_value() || !call.has_value_after(&form),
        (None, None) => false,
    };
    if let Some(head) = head.filter(|_| !is_known) {
        let sign = if head.is_closing { "/" } else { "" };
        let name = head.name.chars().take(MAX_NAME_CHARS);
        unknown.insert(sign.chars().chain(name).collect());
    }
    call.parts.iter().for_each(|it| add_all(it, unknown));
    if let Some(block) = &call.block {
        add_all(&block.nodes, unknown);
        add_all(block.otherwise.as_deref().unwrap_or_default(), unknown);
    }
}

#[cfg(test)]
mod tests {
    use super::{find, warning};

    #[test]
    fn each_unknown_name_is_found_once_wherever_it_stands() {
        let text = "{{char}} {{calc::1}} {{calc::2}} {{setvar::x::{{Foo}}}} {{if x}}{{bar}}{{else}}\
            {{baz a}}{{/if}} {{#if x}}{{/each}} {{user::1}} {{.x}} {{.x ! 1}} {{!char}} {{// {{no}} }}";

        let found: Vec<String> = find(text).into_iter().collect();

        assert_eq!(
            found,
            [
                "!char", ".x", "/each", "Foo", "bar", "baz", "calc", "if", "user"
            ]
        );
    }

    #[test]
    fn a_warning_names_the_field_and_at_most_ten_macros() {
        let many: String = (10..30).map(|it| format!("{{{{m{it}}}}}")).collect();

        let few = warning("scenario", "{{b}}{{a::1}}").expect("two are unknown");
        let cut = warning("scenario", &many).expect("twenty are unknown");

        assert_eq!(
            few.message,
            "`scenario` contains unknown macros, which are sent as they are: {{a}}, {{b}}."
        );
        assert!(cut.message.ends_with("{{m19}}, …."), "{}", cut.message);
        assert_eq!(warning("scenario", "{{char}}"), None);
    }

    #[test]
    fn a_text_of_known_macros_has_none() {
        let text =
            "{{//}} {{x}} {{///}}{{reverse}}a{{/reverse}}{{time_UTC+2}}{{.x ??= 1}}<USER>{{{{}}";

        assert!(find(text).is_empty());
    }
}
