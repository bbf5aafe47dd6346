//! Implements `Dialect` for text completion APIs. A request without a text is sent to the chat API of
//! the same server.

use reqwest::header::HeaderName;
use serde_json::Value;

use crate::dialect::{ChunkParser, Dialect, DialectRequest};
use crate::error::LlmError;
use crate::openai_chat::dialect::OpenAiChat;
use crate::openai_chat::variant::ChatVariant;
use crate::provider::Capability;
use crate::provider_options::ProviderOptions;
use crate::request::Request;
use crate::secret::Secret;
use crate::text_completion::chunk::TextChunkParser;
use crate::text_completion::completion_api::CompletionApi;
use crate::text_completion::{request, token_count};

/// The API with the options of its provider.
#[derive(Debug, Clone)]
pub struct TextCompletion {
    chat: OpenAiChat,
}

impl TextCompletion {
    /// Creates the dialect of an OpenAI-compatible server.
    pub fn new(options: ProviderOptions) -> Self {
        Self {
            chat: OpenAiChat {
                variant: ChatVariant::Compatible,
                options,
            },
        }
    }

    fn api(&self) -> CompletionApi {
        self.chat.options.completion_api
    }

    /// Returns a path of the chat API below the root.
    fn chat_path(&self, path: &str) -> String {
        match self.api().is_native() {
            true => format!("/v1{path}"),
            false => path.to_owned(),
        }
    }
}

impl Dialect for TextCompletion {
    fn kind(&self) -> &'static str {
        self.chat.kind()
    }

    fn root_path(&self, path: &str) -> String {
        let mut path = path.trim_end_matches('/');
        for end in ["/chat/completions", "/completions"] {
            path = path.strip_suffix(end).unwrap_or(path);
        }
        if self.api().is_native() {
            for end in ["/completion", "/api/extra/generate/stream", "/api", "/v1"] {
                path = path.strip_suffix(end).unwrap_or(path);
            }
        }
        path.to_owned()
    }

    fn build_request(&self, request: &Request) -> Result<DialectRequest, LlmError> {
        let Some(prompt) = &request.prompt_text else {
            let built = self.chat.build_request(request)?;
            return Ok(DialectRequest {
                path: self.chat_path(&built.path),
                ..built
            });
        };
        let path = match self.api() {
            CompletionApi::Auto | CompletionApi::Openai => "/completions",
            CompletionApi::LlamaCpp => "/completion",
            CompletionApi::Koboldcpp => "/api/extra/generate/stream",
        };
        Ok(DialectRequest {
            path: path.to_owned(),
            query: None,
            body: request::body(request, prompt, self.api(), &self.chat.options),
        })
    }

    fn options(&self) -> &ProviderOptions {
        &self.chat.options
    }

    fn auth_header(&self, key: &Secret) -> (HeaderName, String) {
        self.chat.auth_header(key)
    }

    fn has_capability(&self, capability: Capability) -> bool {
        self.chat.has_capability(capability)
    }

    fn min_output_tokens(&self, request: &Request) -> u32 {
        match request.prompt_text {
            Some(_) => 1,
            None => self.chat.min_output_tokens(request),
        }
    }

    fn max_stops(&self) -> usize {
        match self.api().is_native() {
            true => usize::MAX,
            false => request::MAX_OPENAI_STOPS,
        }
    }

    fn completes_text(&self) -> bool {
        true
    }

    fn token_count_request(&self, text: &str) -> Option<DialectRequest> {
        token_count::request(self.api(), text)
    }

    fn parse_token_count(&self, response: &Value) -> Option<i64> {
        token_count::parse(response)
    }

    fn can_prefill(&self, request: &Request) -> bool {
        request.prompt_text.is_some() || self.chat.can_prefill(request)
    }

    fn model_list_path(&self) -> (&'static str, Option<&'static str>) {
        match self.api().is_native() {
            true => ("/v1/models", None),
            false => ("/models", None),
        }
    }

    fn embeddings_path(&self) -> Option<&'static str> {
        match self.api().is_native() {
            true => Some("/v1/embeddings"),
            false => self.chat.embeddings_path(),
        }
    }

    fn chunk_parser(&self) -> Box<dyn ChunkParser> {
        Box::new(TextChunkParser)
    }
}

#[cfg(test)]
mod tests {
    use super::TextCompletion;
    use crate::dialect::Dialect;
    use crate::provider_options::ProviderOptions;
    use crate::request::Request;
    use crate::text_completion::completion_api::CompletionApi;

    fn dialect(completion_api: CompletionApi) -> TextCompletion {
        TextCompletion::new(ProviderOptions {
            completion_api,
            ..ProviderOptions::default()
        })
    }

    /// Returns the paths of a text and of a chat, on a server whose address a user entered.
    fn paths(api: CompletionApi, entered: &str) -> [String; 2] {
        let dialect = dialect(api);
        let text = Request {
            prompt_text: Some("Once".to_owned()),
            ..Request::default()
        };
        [text, Request::default()]
            .map(|it| dialect.root_path(entered) + &dialect.build_request(&it).unwrap().path)
    }

    #[test]
    fn texts_and_chats_have_the_paths_of_their_api() {
        for (api, entered, [text, chat]) in [
            (
                CompletionApi::Auto,
                "/v1/",
                ["/v1/completions", "/v1/chat/completions"],
            ),
            (
                CompletionApi::Openai,
                "/v1/completions",
                ["/v1/completions", "/v1/chat/completions"],
            ),
            (
                CompletionApi::LlamaCpp,
                "/v1",
                ["/completion", "/v1/chat/completions"],
            ),
            (
                CompletionApi::LlamaCpp,
                "/",
                ["/completion", "/v1/chat/completions"],
            ),
            (
                CompletionApi::Koboldcpp,
                "/x/api",
                ["/x/api/extra/generate/stream", "/x/v1/chat/completions"],
            ),
        ] {
            assert_eq!(paths(api, entered), [text, chat], "{api:?} {entered}");
        }
    }
}
