//! The requests to the model to choose the next speaker, and its answers: mostly usable, sometimes wrong,
//! slow, or never complete.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use serde_json::{Value, json};

use crate::support::fake_provider::script::ResponseScript;

/// The beginning of the instructions of a request to choose a speaker, with or without a schema.
const INSTRUCTIONS: &str = "You direct a group chat.";
/// The beginning of the reason that the model gives.
const REASON: &str = "pick";
/// The pause between the comments of a model that never answers. A node that receives them waits until the
/// time of the choice is over.
const COMMENT_PAUSE: Duration = Duration::from_millis(300);

/// Returns the names in a request to choose a speaker; `None` for another request.
pub fn offered(request: &Value) -> Option<Vec<String>> {
    let system = request["messages"][0]["content"].as_str()?;
    if !system.starts_with(INSTRUCTIONS) {
        return None;
    }
    let text = request["messages"][1]["content"].as_str()?;
    let (_, characters) = text.split_once("<characters>")?;
    let (characters, _) = characters.split_once("</characters>")?;
    let lines = characters
        .lines()
        .filter_map(|it| serde_json::from_str::<Value>(it).ok());
    let names = lines.filter_map(|it| Some(it["name"].as_str()?.to_owned()));
    Some(names.collect())
}

/// Returns whether a text is such a reason.
pub fn is_reason(text: &str) -> bool {
    text.starts_with(REASON)
}

/// Returns the reason that the `n`-th response of the model gives for its choice.
pub fn reason(n: usize) -> String {
    format!("{REASON}{n}")
}

/// Answers such a request.
pub fn answer(rng: &mut ChaCha8Rng, names: &[String], n: usize) -> ResponseScript {
    let count = rng.random_range(1..=names.len().max(1));
    let from = rng.random_range(0..names.len().max(1));
    let chosen: Vec<&String> = names.iter().cycle().skip(from).take(count).collect();
    let right = json!({"speakers": chosen, "reason": reason(n)}).to_string();
    match rng.random_range(0..20) {
        0 => ResponseScript::say(&json!({"speakers": ["Zoe"], "reason": reason(n)}).to_string()),
        1 => ResponseScript::say("Someone should say something."),
        2 => ResponseScript::say(&right[..right.len() / 2]),
        3 => ResponseScript::stream()
            .role()
            .forever(": wait\n\n", COMMENT_PAUSE),
        4 => ResponseScript::hang_before_first_chunk(),
        5..8 => slowly(rng, &right),
        _ => ResponseScript::say(&right),
    }
}

fn slowly(rng: &mut ChaCha8Rng, text: &str) -> ResponseScript {
    let pause = Duration::from_millis(rng.random_range(100..900));
    let (first, rest) = text.split_at(text.len() / 2);
    let begun = ResponseScript::stream().role().pause(pause).text(first);
    let whole = begun.pause(pause).text(rest);
    whole.finish("stop").usage(7, 9).done()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::offered;

    #[test]
    fn the_names_are_read_from_the_request_and_no_other_request_has_any() {
        let text = "<characters>\n{\"name\":\"Ada\",\"about\":\"\"}\n{\"name\":\"Bob\"}\n</characters>\n<messages>\n</messages>";
        let request = |system: &str| json!({"messages": [{"role": "system", "content": system}, {"role": "user", "content": text}]});

        let names = offered(&request("You direct a group chat. Choose."));

        assert_eq!(names, Some(vec!["Ada".to_owned(), "Bob".to_owned()]));
        assert_eq!(offered(&request("You are Ada.")), None);
    }
}
