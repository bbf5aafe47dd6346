//! Assembles the streamed fragments of tool calls into complete tool calls.

use std::collections::BTreeMap;

use llm::tool::{ToolCall, ToolCallDelta};

/// The tool calls of one answer while they arrive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolCallAssembler {
    /// Keyed by the provider's index of the call.
    parts: BTreeMap<usize, ToolCall>,
}

impl ToolCallAssembler {
    /// Adds the next fragment. Only the first id and the first name of a call are kept.
    pub fn push(&mut self, piece: ToolCallDelta) {
        let call = self.parts.entry(piece.index).or_default();
        if let Some(id) = piece.id.filter(|_| call.id.is_empty()) {
            call.id = id;
        }
        if let Some(name) = piece.name.filter(|_| call.name.is_empty()) {
            call.name = name;
        }
        call.arguments.push_str(&piece.arguments);
    }

    /// Returns all calls in order, without those that have no name.
    pub fn finish(self) -> Vec<ToolCall> {
        let calls = self.parts.into_values();
        calls.filter(|it| !it.name.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use llm::tool::{ToolCall, ToolCallDelta};

    use super::ToolCallAssembler;

    fn piece(index: usize, name: &str, arguments: &str) -> ToolCallDelta {
        let name = Some(name.to_owned()).filter(|it| !it.is_empty());
        ToolCallDelta {
            index,
            id: name.as_ref().map(|it| format!("id of {it}")),
            name,
            arguments: arguments.to_owned(),
        }
    }

    #[test]
    fn pieces_of_several_calls_may_be_interleaved() {
        let mut calls = ToolCallAssembler::default();
        for piece in [
            piece(1, "b", "{"),
            piece(0, "a", ""),
            piece(1, "", "}"),
            piece(0, "again", "[]"),
            piece(2, "", "nobody's"),
        ] {
            calls.push(piece);
        }

        let finished: Vec<_> = calls.finish();

        let call = |name: &str, arguments: &str| ToolCall {
            id: format!("id of {name}"),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        };
        assert_eq!(finished, [call("a", "[]"), call("b", "{}")]);
    }
}
