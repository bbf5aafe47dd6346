//! The two variants of the Chat Completions API: OpenAI's own, and that of compatible servers.

/// The variant of the API. OpenAI renamed the field that limits the response, and many compatible
/// servers drop or reject the `name` of a message, so for them the text must contain the speaker's
/// name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatVariant {
    Openai,
    Compatible,
}
