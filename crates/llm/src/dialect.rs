//! The trait `Dialect`: builds the requests of one provider API and parses its responses. HTTP
//! calls and the decoding of streams are the same for all APIs: see `endpoint` and
//! `stream::decoder`.

use std::fmt;

use reqwest::header::HeaderName;
use serde_json::Value;

use crate::delta::Delta;
use crate::error::LlmError;
use crate::provider::Capability;
use crate::provider_options::ProviderOptions;
use crate::request::Request;
use crate::secret::Secret;

/// A provider API.
pub trait Dialect: fmt::Debug + Send + Sync {
    /// Returns the kind, as in a provider's settings.
    fn kind(&self) -> &'static str;

    /// Returns the path of the API's root for a path that a user entered, without a trailing slash.
    fn root_path(&self, path: &str) -> String;

    /// Builds the request for a streamed response.
    ///
    /// # Errors
    /// Returns `Unusable` when the model name cannot be sent.
    fn build_request(&self, request: &Request) -> Result<DialectRequest, LlmError>;

    /// Returns the options of the provider.
    fn options(&self) -> &ProviderOptions;

    /// Returns the header for the key, and its value.
    fn auth_header(&self, key: &Secret) -> (HeaderName, String);

    /// Returns further headers of every call.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Returns whether the API supports a capability.
    fn has_capability(&self, capability: Capability) -> bool;

    /// Returns the lowest token limit that is sent; a lower one is replaced by it.
    fn min_output_tokens(&self, _request: &Request) -> u32 {
        1
    }

    /// Returns how many stop sequences the API accepts; further ones are not sent.
    fn max_stops(&self) -> usize {
        usize::MAX
    }

    /// Returns whether the API continues the [text](Request::prompt_text) of a request.
    fn completes_text(&self) -> bool {
        false
    }

    /// Builds the request that counts the tokens of a text; `None`: the API has no such request.
    fn token_count_request(&self, _text: &str) -> Option<DialectRequest> {
        None
    }

    /// Returns the number of tokens that the response states, if it states one.
    fn parse_token_count(&self, _response: &Value) -> Option<i64> {
        None
    }

    /// Returns whether the model of such a request continues a message of its own at the end of the
    /// prompt.
    fn can_prefill(&self, _request: &Request) -> bool {
        false
    }

    /// Returns how a response is divided into pieces.
    fn framing(&self) -> Framing {
        Framing::Events
    }

    /// Returns a parser for one response.
    fn chunk_parser(&self) -> Box<dyn ChunkParser>;

    /// Returns the path and query of the model list, below the root.
    fn model_list_path(&self) -> (&'static str, Option<&'static str>) {
        ("/models", None)
    }

    /// Returns the path of OpenAI's embeddings protocol, below the root, if the provider supports it.
    fn embeddings_path(&self) -> Option<&'static str> {
        None
    }

    /// Returns the name of a model in that list, if it is a chat model.
    fn model_name(&self, entry: &Value) -> Option<String> {
        let name = [entry.get("id"), entry.get("name"), Some(entry)];
        let name = name.into_iter().flatten().find_map(Value::as_str)?;
        Some(name.to_owned())
    }
}

/// A POST to a path below the root.
#[derive(Debug, Clone, PartialEq)]
pub struct DialectRequest {
    pub path: String,
    pub query: Option<&'static str>,
    pub body: Value,
}

/// How a stream is divided into pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// An event stream (`text/event-stream`).
    Events,
    /// One JSON object per line.
    Lines,
}

/// Converts the pieces of one response to deltas.
pub trait ChunkParser: Send {
    /// Parses a piece: the event's name, which may be empty, and its data. The key is used only to
    /// remove it from messages. A piece without content yields a keep-alive.
    ///
    /// # Errors
    /// Returns an error when the piece is an error or is not valid in this API.
    fn parse(
        &mut self,
        name: &str,
        data: &str,
        key: Option<&Secret>,
    ) -> Result<ParsedChunk, LlmError>;
}

/// The result of parsing one piece.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParsedChunk {
    pub deltas: Vec<Delta>,
    /// Everything after it is ignored.
    pub is_last: bool,
}

impl ParsedChunk {
    /// Returns these deltas, or a keep-alive if there are none; more may follow.
    pub fn from_deltas(mut deltas: Vec<Delta>) -> Self {
        if deltas.is_empty() {
            deltas.push(Delta::KeepAlive);
        }
        Self {
            deltas,
            is_last: false,
        }
    }

    /// Returns these deltas as the last ones of a response.
    pub fn last(deltas: Vec<Delta>) -> Self {
        Self {
            deltas,
            is_last: true,
        }
    }
}
