//! Lists the macros: their names, other names with the same meaning, and how many arguments each
//! accepts.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The number of arguments of a macro with a list of any length.
pub const ANY: usize = usize::MAX;

/// A macro.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacroSpec {
    /// Its first name, in lower case.
    pub name: &'static str,
    /// The number of arguments without which it is left as it is.
    pub min_args: usize,
    /// The number of arguments beyond which it is left as it is.
    pub max_args: usize,
}

/// The macros by subject: names in lower case, and the least and the largest number of arguments.
const MACROS: &[(&str, usize, usize)] = &[
    // Names.
    ("user", 0, 0),
    ("char bot", 0, 0),
    ("group charifnotgroup", 0, 0),
    ("groupnotmuted", 0, 0),
    ("notchar", 0, 0),
    ("users", 0, 0),
    // Cards and personas.
    ("description chardescription", 0, 0),
    ("personality charpersonality", 0, 0),
    ("scenario charscenario", 0, 0),
    ("persona", 0, 0),
    ("persona_list", 0, 0),
    ("mesexamples mesexamplesraw", 0, 0),
    ("charprompt", 0, 0),
    ("charinstruction charjailbreak", 0, 0),
    ("chardepthprompt", 0, 0),
    ("charcreatornotes creatornotes", 0, 0),
    ("greeting charfirstmessage", 0, 1),
    ("charversion version char_version", 0, 0),
    ("original", 0, 0),
    // The conversation.
    ("lastmessage lastchatmessage", 0, 0),
    ("lastusermessage", 0, 0),
    ("lastcharmessage", 0, 0),
    ("lastmessageid", 0, 0),
    ("firstincludedmessageid firstdisplayedmessageid", 0, 0),
    ("lastswipeid", 0, 0),
    ("currentswipeid", 0, 0),
    ("allchatrange", 0, 0),
    ("input", 0, 0),
    ("idleduration idle_duration", 0, 0),
    ("summary", 0, 0),
    // Prompts.
    ("systemprompt", 0, 0),
    (
        "defaultsystemprompt instructsystem instructsystemprompt",
        0,
        0,
    ),
    ("authorsnote", 0, 0),
    ("charauthorsnote", 0, 0),
    ("defaultauthorsnote", 0, 0),
    // Those of text completion templates; empty in a chat completion.
    ("instructinput instructuserprefix", 0, 0),
    ("instructusersuffix", 0, 0),
    ("instructoutput instructassistantprefix", 0, 0),
    ("instructassistantsuffix instructseparator", 0, 0),
    ("instructsystemprefix", 0, 0),
    ("instructsystemsuffix", 0, 0),
    (
        "instructfirstassistantprefix instructfirstoutputprefix",
        0,
        0,
    ),
    ("instructlastassistantprefix instructlastoutputprefix", 0, 0),
    ("instructfirstuserprefix instructfirstinput", 0, 0),
    ("instructlastuserprefix instructlastinput", 0, 0),
    ("instructstorystringprefix", 0, 0),
    ("instructstorystringsuffix", 0, 0),
    ("instructstop", 0, 0),
    ("instructuserfiller", 0, 0),
    ("instructsysteminstructionprefix", 0, 0),
    ("exampleseparator chatseparator", 0, 0),
    ("chatstart", 0, 0),
    // The state of the application.
    ("model", 0, 0),
    ("maxprompt maxprompttokens", 0, 0),
    ("maxcontext maxcontexttokens", 0, 0),
    ("maxresponse maxresponsetokens", 0, 0),
    ("lastgenerationtype", 0, 0),
    ("ismobile", 0, 0),
    ("hasextension", 1, 1),
    // Time.
    ("time", 0, 1),
    (TIME_AT_OFFSET, 0, 1),
    ("date", 0, 0),
    ("weekday", 0, 0),
    ("isotime", 0, 0),
    ("isodate", 0, 0),
    ("datetimeformat", 1, 1),
    ("timediff", 2, 2),
    // Chance.
    ("random", 1, ANY),
    ("pick", 1, ANY),
    ("roll", 1, 1),
    // Variables.
    ("getvar", 1, 1),
    ("setvar", 2, 2),
    ("addvar", 2, 2),
    ("incvar", 1, 1),
    ("decvar", 1, 1),
    ("hasvar varexists", 1, 1),
    ("deletevar flushvar", 1, 1),
    ("getvarkey", 2, 2),
    ("setvarkey", 3, 3),
    ("getglobalvar", 1, 1),
    ("setglobalvar", 2, 2),
    ("addglobalvar", 2, 2),
    ("incglobalvar", 1, 1),
    ("decglobalvar", 1, 1),
    ("hasglobalvar globalvarexists", 1, 1),
    ("deleteglobalvar flushglobalvar", 1, 1),
    ("getglobalvarkey", 2, 2),
    ("setglobalvarkey", 3, 3),
    // Text.
    ("newline", 0, 1),
    ("space", 0, 1),
    ("trim", 0, 1),
    ("noop", 0, 0),
    ("reverse", 1, 1),
    (COMMENT, 0, ANY),
    ("comment hidden_key", 0, ANY),
    ("banned", 1, 1),
    ("outlet", 1, 1),
    (IF, 2, 2),
];

/// The name of a comment, as in `{{// text}}`.
pub const COMMENT: &str = "//";
/// The name of a condition.
pub const IF: &str = "if";
/// The name of all macros `{{time_UTC+2}}`; the offset follows it.
pub const TIME_AT_OFFSET: &str = "time_utc";

static BY_NAME: LazyLock<HashMap<&'static str, MacroSpec>> = LazyLock::new(|| {
    let all = MACROS.iter().flat_map(|(names, min_args, max_args)| {
        let first = names.split_ascii_whitespace().next().unwrap_or_default();
        let spec = MacroSpec {
            name: first,
            min_args: *min_args,
            max_args: *max_args,
        };
        names.split_ascii_whitespace().map(move |it| (it, spec))
    });
    all.collect()
});

/// Returns the macro with this name, in any letter case.
pub fn find(name: &str) -> Option<MacroSpec> {
    let name = name.to_ascii_lowercase();
    let name = match name.starts_with(TIME_AT_OFFSET) {
        true => TIME_AT_OFFSET,
        false => name.as_str(),
    };
    BY_NAME.get(name).copied()
}

/// Returns all names, in lower case.
pub fn all() -> impl Iterator<Item = &'static str> {
    BY_NAME.keys().copied()
}

#[cfg(test)]
mod tests {
    use super::{BY_NAME, MACROS, find};

    #[test]
    fn every_name_has_one_meaning() {
        let n_names: usize = MACROS
            .iter()
            .map(|(names, ..)| names.split_ascii_whitespace().count())
            .sum();

        assert_eq!(BY_NAME.len(), n_names);
    }

    #[test]
    fn a_macro_is_found_by_each_of_its_names_in_any_letter_case() {
        let first = |name| find(name).map(|it| it.name);

        assert_eq!(first("CharJailbreak"), Some("charinstruction"));
        assert_eq!(first("hidden_key"), Some("comment"));
        assert_eq!(first("time_UTC-3"), Some("time_utc"));
        assert_eq!(first("charm"), None);
        assert_eq!(first("/if"), None);
    }
}
