//! The Chat Completions API of OpenAI and of compatible servers.

use reqwest::header::{AUTHORIZATION, HeaderName};
use serde_json::json;

use crate::llm::delta::{Delta, FinishReason};
use crate::llm::dialect::{ChunkParser, Dialect, DialectRequest, ParsedChunk};
use crate::llm::error::LlmError;
use crate::llm::openai_chat_request::ChatVariant;
use crate::llm::provider::Capability;
use crate::llm::provider_options::ProviderOptions;
use crate::llm::request::Request;
use crate::llm::secret::Secret;
use crate::llm::{openai_chat_chunk, openai_chat_error, openai_chat_request};

/// The API in one of its variants.
#[derive(Debug, Clone)]
pub struct OpenAiChat {
    pub variant: ChatVariant,
    pub options: ProviderOptions,
}

impl Dialect for OpenAiChat {
    fn kind(&self) -> &'static str {
        match self.variant {
            ChatVariant::Openai => "openai",
            ChatVariant::Compatible => "openai_compatible",
        }
    }

    fn root_path(&self, path: &str) -> String {
        let path = path.trim_end_matches('/');
        let path = path.strip_suffix("/chat/completions").unwrap_or(path);
        path.to_owned()
    }

    fn build_request(&self, request: &Request) -> Result<DialectRequest, LlmError> {
        let mut body =
            openai_chat_request::body(&self.options.apply_to_limits(request), self.variant);
        if let Some(effort) = self.options.reasoning {
            body["reasoning_effort"] = json!(effort.as_str());
        }
        Ok(DialectRequest {
            path: "/chat/completions".to_owned(),
            query: None,
            body,
        })
    }

    fn auth_header(&self, key: &Secret) -> (HeaderName, String) {
        (AUTHORIZATION, format!("Bearer {}", key.expose()))
    }

    fn has_capability(&self, capability: Capability) -> bool {
        // Only a few compatible servers support documents, and some ignore them.
        capability != Capability::Documents || self.variant == ChatVariant::Openai
    }

    fn chunk_parser(&self) -> Box<dyn ChunkParser> {
        Box::new(ChatChunkParser)
    }
}

/// Parses a response chunk by chunk, without state.
#[derive(Debug, Clone, Copy)]
pub struct ChatChunkParser;

impl ChunkParser for ChatChunkParser {
    fn parse(
        &mut self,
        name: &str,
        data: &str,
        key: Option<&Secret>,
    ) -> Result<ParsedChunk, LlmError> {
        if data.trim() == "[DONE]" {
            return Ok(ParsedChunk::last(vec![Delta::End(FinishReason::Stop)]));
        }
        if name == "error" {
            let object = serde_json::from_str(data).unwrap_or_else(|_| data.into());
            return Err(openai_chat_error::from_object(&object, key));
        }
        openai_chat_chunk::parse(data, key).map(ParsedChunk::from_deltas)
    }
}
