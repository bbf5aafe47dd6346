//! Splits the example messages of cards into dialogues, and a dialogue into its messages. No I/O.

/// Starts an example dialogue.
pub const EXAMPLE_START: &str = "<START>";

/// A message of an example dialogue.
#[derive(Debug, PartialEq, Eq)]
pub struct ExampleMessage {
    /// Whether the user says it, and not a character.
    pub is_of_user: bool,
    pub text: String,
}

/// Returns the dialogues between the separators, which are case-insensitive. Blank ones are omitted.
pub fn split(text: &str) -> Vec<&str> {
    let mut blocks = Vec::new();
    let mut from = 0;
    for (at, _) in text.match_indices('<') {
        let separator = text.get(at..at + EXAMPLE_START.len());
        if separator.is_some_and(|it| it.eq_ignore_ascii_case(EXAMPLE_START)) {
            blocks.push(&text[from..at]);
            from = at + EXAMPLE_START.len();
        }
    }
    blocks.push(&text[from..]);
    blocks.retain(|it| !it.trim().is_empty());
    blocks
}

/// Returns the messages of a dialogue: each begins with a line that begins with a name and a colon. Lines
/// before the first such line belong to the first message. Returns none if there is no such line. Unless
/// `keeps_names`, the names are removed.
pub fn read(
    block: &str,
    (user, characters): (&str, &[&str]),
    keeps_names: bool,
) -> Vec<ExampleMessage> {
    let mut messages: Vec<ExampleMessage> = Vec::new();
    let mut head = String::new();
    for line in block.trim().lines() {
        let of_user = after_name(line, user).map(|rest| (true, rest));
        let spoken = of_user.or_else(|| {
            let mut rests = characters.iter().filter_map(|it| after_name(line, it));
            rests.next().map(|rest| (false, rest))
        });
        match (spoken, messages.last_mut()) {
            (Some((is_of_user, rest)), _) => {
                let said = if keeps_names { line } else { rest };
                let text = std::mem::take(&mut head) + said.trim();
                messages.push(ExampleMessage { is_of_user, text });
            }
            (None, Some(last)) => last.text.extend(["\n", line]),
            (None, None) => head.extend([line, "\n"]),
        }
    }
    messages
        .iter_mut()
        .for_each(|it| it.text.truncate(it.text.trim_end().len()));
    messages.retain(|it| !it.text.is_empty());
    messages
}

/// Returns the text of a line after a name and its colon.
fn after_name<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = line.trim_start().strip_prefix(name)?;
    rest.strip_prefix(':').filter(|_| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::{ExampleMessage, read, split};

    const NAMES: (&str, &[&str]) = ("Ann", &["Mina", "Rook"]);

    fn message(is_of_user: bool, text: &str) -> ExampleMessage {
        let text = text.to_owned();
        ExampleMessage { is_of_user, text }
    }

    #[test]
    fn dialogues_begin_at_separators_of_any_case() {
        let blocks = split("<START>\nAnn: Hi.\n<start>\n \n<Start>Mina: 1 < 2");

        assert_eq!(blocks, ["\nAnn: Hi.\n", "Mina: 1 < 2"]);
    }

    #[test]
    fn each_named_line_begins_a_message_and_others_continue_it() {
        let block = "It is late.\nAnn: Are you there?\nMina: Yes.\n\nCome in.\nRook: Wait: no.";

        let expected = [
            message(true, "It is late.\nAre you there?"),
            message(false, "Yes.\n\nCome in."),
            message(false, "Wait: no."),
        ];
        assert_eq!(read(block, NAMES, false), expected);
    }

    #[test]
    fn names_are_kept_on_request_and_a_name_alone_is_no_message() {
        let kept = read("Ann: Hi.\nRook: Ho.", NAMES, true);
        let alone = read("Mina:\nAnn: Hi.", NAMES, false);

        assert_eq!(
            kept,
            [message(true, "Ann: Hi."), message(false, "Rook: Ho.")]
        );
        assert_eq!(alone, [message(true, "Hi.")]);
    }

    #[test]
    fn prose_has_no_messages() {
        assert_eq!(read("She hums.\nMinas: no name.", NAMES, false), []);
        assert_eq!(read("Hi: there", ("", &[]), false), []);
    }
}
