//! Reads a chat file as its import does and returns what the import would create. Stores nothing.

use std::collections::HashMap;

use base::ids::MembershipId;
use serde::Serialize;
use tavern::chats::batches::BatchEvent;
use tavern::chats::chat_file::ChatFile;
use tavern::chats::line_report::LineReport;
use tavern::chats::message::ChatHeader;
use tavern::chats::timed_world_info::NamedTimedEffect;
use utoipa::ToSchema;

use crate::conversations::chats::chat_authors::{AuthorMap, AuthorName, AuthorTarget};
use crate::conversations::chats::chat_import;

/// The maximum numbers of chats and of names that are listed; further ones are only counted.
const MAX_CHATS: usize = 100;
const MAX_AUTHORS: usize = 200;
/// The maximum number of names that are counted: a file of 100 MB may have millions.
const MAX_NAMES: usize = 10_000;

/// The maximum length of a note or a scenario, in characters.
const MAX_TEXT: usize = 500;

/// The contents of a chat file before its import.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = ChatPreview)]
pub struct ChatPreview {
    /// The number of conversations that would be created.
    pub n_conversations: usize,
    /// The first hundred of them, in the order of the file.
    pub conversations: Vec<PreviewedConversation>,
    /// The number of messages of all of them.
    pub n_messages: usize,
    /// The number of names of authors, at most 10,000.
    pub n_authors: usize,
    /// The 200 most frequent of them.
    pub authors: Vec<PreviewedAuthor>,
    /// What would be changed or left out, as the import reports it.
    pub report: LineReport,
    /// The timed effects of all chats.
    #[serde(skip)]
    pub timed_effects: Vec<NamedTimedEffect>,
}

/// A conversation that an import would create.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = ChatPreviewConversation)]
pub struct PreviewedConversation {
    pub title: String,
    pub n_messages: usize,
    /// The lorebook that would be added to the caller's library.
    pub lorebook: Option<PreviewedLorebook>,
    /// The beginning of the author's note.
    pub author_note: Option<String>,
    /// The beginning of the scenario.
    pub scenario: Option<String>,
    /// The number of variables that macros read.
    pub n_variables: usize,
}

/// The lorebook of a chat.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = ChatPreviewLorebook)]
pub struct PreviewedLorebook {
    pub name: String,
    pub n_entries: usize,
}

/// An author of messages, and the membership to which the name would be assigned.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = ChatPreviewAuthor)]
pub struct PreviewedAuthor {
    pub name: String,
    /// Whether the author is a person; else a character.
    pub is_user: bool,
    pub n_messages: usize,
    /// `null`: a new membership.
    pub membership_id: Option<MembershipId>,
}

/// Reads a file to its end. Blocks. `file_title` is the name of the file without its extension, and
/// `authors` assigns the names.
///
/// # Errors
/// Returns the I/O error if the file cannot be read.
pub fn read(
    file: ChatFile,
    file_title: Option<&str>,
    authors: AuthorMap,
) -> std::io::Result<ChatPreview> {
    let mut reading = PreviewReader {
        authors,
        header: ChatHeader::default(),
        n_messages: 0,
        chats: Vec::new(),
        names: HashMap::new(),
    };
    // The tokens are counted by the import.
    let report = file.read(&|_| 0, &mut |event| {
        reading.receive(event);
        true
    })?;
    reading.complete_chat();
    Ok(reading.finish(file_title, report))
}

struct PreviewReader {
    authors: AuthorMap,
    header: ChatHeader,
    /// The number of messages of the current chat.
    n_messages: usize,
    /// The earlier chats, with their numbers of messages.
    chats: Vec<(ChatHeader, usize)>,
    names: HashMap<AuthorName, (AuthorTarget, usize)>,
}

impl PreviewReader {
    fn receive(&mut self, event: BatchEvent) {
        match event {
            BatchEvent::Header(header) => self.header = *header,
            BatchEvent::NextChat => self.complete_chat(),
            BatchEvent::Batch(batch) => {
                self.n_messages += batch.messages.len();
                for message in batch.messages {
                    self.count(AuthorName::of_message(&message, &self.header));
                }
            }
        }
    }

    /// Counts a message of an author.
    fn count(&mut self, name: AuthorName) {
        if let Some((_, n_messages)) = self.names.get_mut(&name) {
            *n_messages += 1;
        } else if self.names.len() < MAX_NAMES {
            let author = self.authors.resolve(name.clone());
            self.names.insert(name, (author, 1));
        }
    }

    /// Adds the current chat to the earlier ones, unless it has no messages.
    fn complete_chat(&mut self) {
        let n_messages = std::mem::take(&mut self.n_messages);
        if n_messages > 0 {
            let header = std::mem::take(&mut self.header);
            self.chats.push((header, n_messages));
        }
    }

    fn finish(self, file_title: Option<&str>, report: LineReport) -> ChatPreview {
        let is_one_of_many = self.chats.len() > 1;
        let numbered = (1..).zip(&self.chats).take(MAX_CHATS);
        let conversations = numbered.map(|(number, (header, n_messages))| {
            let number = is_one_of_many.then_some(number);
            let title = chat_import::title_of_chat(header, file_title, number);
            preview_conversation(title, header, *n_messages)
        });
        let names = self.names.into_iter();
        let names = names.map(|(name, (author, n_messages))| PreviewedAuthor {
            name: name.name,
            is_user: name.is_user,
            n_messages,
            membership_id: match author {
                AuthorTarget::Existing(membership) => Some(membership),
                AuthorTarget::New(_) => None,
            },
        });
        let mut authors: Vec<PreviewedAuthor> = names.collect();
        authors.sort_by(|a, b| {
            let by_count = b.n_messages.cmp(&a.n_messages);
            by_count.then_with(|| (&a.name, a.is_user).cmp(&(&b.name, b.is_user)))
        });
        let n_authors = authors.len();
        authors.truncate(MAX_AUTHORS);
        ChatPreview {
            n_conversations: self.chats.len(),
            conversations: conversations.collect(),
            n_messages: self.chats.iter().map(|it| it.1).sum(),
            n_authors,
            authors,
            report,
            timed_effects: self
                .chats
                .into_iter()
                .flat_map(|(header, _)| header.timed_effects)
                .collect(),
        }
    }
}

fn preview_conversation(
    title: String,
    header: &ChatHeader,
    n_messages: usize,
) -> PreviewedConversation {
    let beginning = |text: &str| text.chars().take(MAX_TEXT).collect();
    let note = header.settings.get("author_note");
    let note = note.and_then(|it| it["text"].as_str());
    let scenario = header.settings.get("scenario_override");
    let scenario = scenario.and_then(|it| it.as_str());
    let lorebook = header.lorebook.as_ref().map(|it| PreviewedLorebook {
        name: it.name.clone(),
        n_entries: it.entries.len(),
    });
    PreviewedConversation {
        title,
        n_messages,
        lorebook,
        author_note: note.map(beginning),
        scenario: scenario.map(beginning),
        n_variables: header.variables.len(),
    }
}
