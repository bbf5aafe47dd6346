//! Reads the director's answer: a JSON object with the names of the speakers or, from a model that
//! wrote no such object, the names that its text mentions. No I/O.

use base::ids::MembershipId;
use serde_json::{Map, Value};

use crate::providers::json_requests::json_answer;
use crate::runs::scheduling::director::choice::DirectorAnswer;
use crate::speakers::mention;
use crate::speakers::selection::Candidate;
use crate::speakers::text_folding::fold_text;

/// Returns the speakers that an answer names. Unknown names, and names that occur a second time, are left
/// out. Returns `None` if no name is left.
pub fn read(text: &str, candidates: &[Candidate]) -> Option<DirectorAnswer> {
    let answer = match json_answer::parse_object(text) {
        Some(object) => read_object(&object, candidates),
        None => DirectorAnswer {
            speakers: mentioned(text, candidates),
            reason: text.to_owned(),
        },
    };
    (!answer.speakers.is_empty()).then_some(answer)
}

fn read_object(object: &Map<String, Value>, candidates: &[Candidate]) -> DirectorAnswer {
    let named: Vec<&str> = match object.get("speakers") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(name)) => vec![name],
        _ => Vec::new(),
    };
    let mut speakers = Vec::new();
    for name in named {
        speakers.extend(find(name, candidates).filter(|id| !speakers.contains(id)));
    }
    let reason = object.get("reason").and_then(Value::as_str);
    DirectorAnswer {
        speakers,
        reason: reason.unwrap_or_default().to_owned(),
    }
}

/// Returns the candidate with this name or alias; a name comes before an alias of another.
fn find(name: &str, candidates: &[Candidate]) -> Option<MembershipId> {
    let name = fold_text(name);
    let is_name = |it: &str| !name.is_empty() && fold_text(it) == name;
    let by_name = |it: &&Candidate| it.names.first().is_some_and(|it| is_name(it));
    let by_alias = |it: &&Candidate| it.names.iter().any(|it| is_name(it));
    let found = candidates.iter().find(by_name);
    found
        .or_else(|| candidates.iter().find(by_alias))
        .map(|it| it.id)
}

fn mentioned(text: &str, candidates: &[Candidate]) -> Vec<MembershipId> {
    let mentions = mention::find(text, &[], candidates);
    mentions.into_iter().map(|it| it.id).collect()
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
