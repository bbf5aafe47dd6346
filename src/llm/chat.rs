//! The Chat Completions API: OpenAI's own, and the many that are compatible with it.

use reqwest::header::AUTHORIZATION;
use reqwest::header::HeaderName;
use serde_json::json;

use crate::llm::chat_body;
use crate::llm::chat_body::Flavor;
use crate::llm::chat_chunk;
use crate::llm::chat_error;
use crate::llm::delta::Delta;
use crate::llm::delta::FinishReason;
use crate::llm::dialect::Ask;
use crate::llm::dialect::Dialect;
use crate::llm::dialect::Piece;
use crate::llm::dialect::Reader;
use crate::llm::error::LlmError;
use crate::llm::provider::Ability;
use crate::llm::request::Request;
use crate::llm::secret::Secret;
use crate::llm::tuning::Tuning;

/// The API in one of its forms.
#[derive(Debug, Clone)]
pub struct Chat {
    pub flavor: Flavor,
    pub tuning: Tuning,
}

impl Dialect for Chat {
    fn kind(&self) -> &'static str {
        match self.flavor {
            Flavor::Openai => "openai",
            Flavor::Compatible => "openai_compatible",
        }
    }

    fn root(&self, path: &str) -> String {
        let path = path.trim_end_matches('/');
        let path = path.strip_suffix("/chat/completions").unwrap_or(path);
        path.to_owned()
    }

    fn ask(&self, request: &Request) -> Result<Ask, LlmError> {
        let mut body = chat_body::body(&self.tuning.widened(request), self.flavor);
        if let Some(effort) = self.tuning.reasoning {
            body["reasoning_effort"] = json!(effort.as_str());
        }
        Ok(Ask {
            path: "/chat/completions".to_owned(),
            query: None,
            body,
        })
    }

    fn key(&self, key: &Secret) -> (HeaderName, String) {
        (AUTHORIZATION, format!("Bearer {}", key.expose()))
    }

    fn can(&self, ability: Ability) -> bool {
        // Of the many compatible ones few read documents, and some pass over them.
        ability != Ability::Documents || self.flavor == Flavor::Openai
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(Chunks)
    }
}

/// Reads an answer chunk by chunk; no chunk needs to know of another.
#[derive(Debug, Clone, Copy)]
pub struct Chunks;

impl Reader for Chunks {
    fn read(&mut self, name: &str, data: &str, key: Option<&Secret>) -> Result<Piece, LlmError> {
        if data.trim() == "[DONE]" {
            return Ok(Piece::last(vec![Delta::End(FinishReason::Stop)]));
        }
        if name == "error" {
            let object = serde_json::from_str(data).unwrap_or_else(|_| data.into());
            return Err(chat_error::from_object(&object, key));
        }
        chat_chunk::read(data, key).map(Piece::of)
    }
}
