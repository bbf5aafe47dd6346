//! What the kinds of endpoints differ in: their words. The way out, the reading of a stream and its
//! limits are the same for all; see `endpoint` and `answer`.

use std::fmt;

use reqwest::header::HeaderName;
use serde_json::Value;

use crate::llm::delta::Delta;
use crate::llm::error::LlmError;
use crate::llm::provider::Capability;
use crate::llm::request::Request;
use crate::llm::secret::Secret;

/// One API, spoken.
pub trait Dialect: fmt::Debug + Send + Sync {
    /// The word of the kind, as in a provider's settings.
    fn kind(&self) -> &'static str;

    /// The path of the API's root, from what somebody has pasted; without a slash at its end.
    fn root_path(&self, path: &str) -> String;

    /// The call that asks for an answer, streamed.
    ///
    /// # Errors
    /// When the model's name cannot be sent.
    fn build_request(&self, request: &Request) -> Result<DialectRequest, LlmError>;

    /// In which header the key goes, and how.
    fn auth_header(&self, key: &Secret) -> (HeaderName, String);

    /// What else every call says.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Whether the API has words for this.
    fn has_capability(&self, capability: Capability) -> bool;

    /// How the pieces of an answer are told apart.
    fn framing(&self) -> Framing {
        Framing::Events
    }

    /// Reads one answer.
    fn chunk_parser(&self) -> Box<dyn ChunkParser>;

    /// Where the models are listed, below the root.
    fn model_list_path(&self) -> (&'static str, Option<&'static str>) {
        ("/models", None)
    }

    /// The name of a model in that list, if it is one that can be talked to.
    fn model_name(&self, entry: &Value) -> Option<String> {
        let name = [entry.get("id"), entry.get("name"), Some(entry)];
        let name = name.into_iter().flatten().find_map(Value::as_str)?;
        Some(name.to_owned())
    }
}

/// A POST below the root.
#[derive(Debug, Clone, PartialEq)]
pub struct DialectRequest {
    pub path: String,
    pub query: Option<&'static str>,
    pub body: Value,
}

/// How the pieces of a stream are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// An event stream.
    Events,
    /// One JSON object a line.
    Lines,
}

/// Turns the pieces of one answer into deltas.
pub trait ChunkParser: Send {
    /// Reads a piece: the event's name, empty where there is none, and its data. The key is only
    /// there to be kept out of messages. A piece that says nothing gives a sign of life.
    ///
    /// # Errors
    /// When the piece is an error, or none that this API knows.
    fn parse(
        &mut self,
        name: &str,
        data: &str,
        key: Option<&Secret>,
    ) -> Result<ParsedChunk, LlmError>;
}

/// What one piece said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParsedChunk {
    pub deltas: Vec<Delta>,
    /// Nothing that follows it counts.
    pub is_last: bool,
}

impl ParsedChunk {
    /// These deltas, or life if there are none; more may follow.
    pub fn from_deltas(mut deltas: Vec<Delta>) -> Self {
        if deltas.is_empty() {
            deltas.push(Delta::KeepAlive);
        }
        Self {
            deltas,
            is_last: false,
        }
    }

    /// These deltas, and nothing after them.
    pub fn last(deltas: Vec<Delta>) -> Self {
        Self {
            deltas,
            is_last: true,
        }
    }
}
