//! Implements `Dialect` for the Chat Completions API of OpenAI and of compatible servers: path,
//! headers, capabilities, and the parsing of chunks.

use reqwest::header::{AUTHORIZATION, HeaderName};

use crate::delta::{Delta, FinishReason};
use crate::dialect::{ChunkParser, Dialect, DialectRequest, ParsedChunk};
use crate::error::LlmError;
use crate::openai_chat::variant::ChatVariant;
use crate::openai_chat::{chunk, error, request};
use crate::provider::Capability;
use crate::provider_options::{Prefill, ProviderOptions};
use crate::request::Request;
use crate::secret::Secret;
use crate::tool::OutputFormat;

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
        Ok(DialectRequest {
            path: "/chat/completions".to_owned(),
            query: None,
            body: request::body(request, &self.options, self.variant),
        })
    }

    fn options(&self) -> &ProviderOptions {
        &self.options
    }

    fn auth_header(&self, key: &Secret) -> (HeaderName, String) {
        (AUTHORIZATION, format!("Bearer {}", key.expose()))
    }

    fn has_capability(&self, capability: Capability) -> bool {
        match capability {
            // Only a few compatible servers support documents, and some ignore them.
            Capability::Documents => self.variant == ChatVariant::Openai,
            Capability::ReasoningSummary => false,
            _ => true,
        }
    }

    fn min_output_tokens(&self, _request: &Request) -> u32 {
        request::MIN_OUTPUT_TOKENS
    }

    fn max_stops(&self) -> usize {
        request::MAX_STOPS
    }

    fn can_prefill(&self, request: &Request) -> bool {
        let is_known = !self.options.backend.continuation_flags().is_empty();
        let continues = match self.options.prefill {
            Prefill::Auto => self.options.supports_prefix || is_known,
            Prefill::On => true,
            Prefill::Off => false,
        };
        continues && request.format == OutputFormat::Text
    }

    fn embeddings_path(&self) -> Option<&'static str> {
        Some("/embeddings")
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
            return Err(error::from_object(&object, key));
        }
        chunk::parse(data, key).map(ParsedChunk::from_deltas)
    }
}
