//! Tests lorebooks on a text: which entries are activated, in the order of a prompt, and why the others
//! are not. No I/O.

use std::collections::{HashMap, HashSet};

use base::ids::{CharacterId, MembershipId, MessageId};
use tavern::import_warning::ImportWarning;
use tavern::lorebook::engine;
use tavern::lorebook::engine_lorebook::Lorebook;
use tavern::lorebook::scan_request::{
    MatchTexts, ScanRequest, ScanSettings, ScanSpeaker, ScanTrigger, ScannedMessage,
};
use tavern::lorebook::scan_result::{ActivatedEntry, ScanResult, SkippedEntry};
use tavern::lorebook::timed_effects::TimedEffects;

use crate::conversations::message::MessageRole;
use crate::prompt::blocks::{BlockOrigin, BlockPayload};
use crate::prompt::context::{HistoryLine, PromptContext};
use crate::prompt::lore_tester::default_order;
use crate::prompt::macro_values::environment::macro_environment;
use crate::prompt::prompt_error::PromptError;
use crate::prompt::{builder, lore};

/// The result of a test.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TestedLore {
    /// In the order of their texts in the prompt. Those that are only inserted by a macro, and those without a
    /// text, are last.
    pub activated: Vec<ActivatedEntry>,
    pub skipped: Vec<SkippedEntry>,
    /// Problems of the lorebooks, for their authors.
    pub warnings: Vec<ImportWarning>,
    /// The characters whose cards the prompt includes.
    pub cards: Vec<CharacterId>,
}

/// A text that is scanned as if a person had posted it.
#[derive(Clone, Debug)]
pub struct TestMessage {
    /// `None` if the person is not a member.
    pub author: Option<MembershipId>,
    pub name: String,
    pub text: String,
}

/// Adds a lorebook, unless it takes part anyway, and the tested text as the newest message.
pub fn add_test_input(context: &mut PromptContext, book: Lorebook, message: TestMessage) {
    let books = &mut context.lore.lorebooks;
    if !books.iter().any(|it| it.key == book.key) {
        books.push(book);
    }
    // Replies are counted only for lorebooks that need their number.
    let replies = context.history.iter();
    let replies = replies.filter(|it| it.role == MessageRole::Assistant);
    let n_replies = i64::try_from(replies.count()).unwrap_or(i64::MAX);
    context.lore.n_replies = context.lore.n_replies.max(n_replies);
    let seq = context.history.last().map_or(0, |it| it.seq) + 1;
    context.history.push(HistoryLine {
        seq,
        // No message has this id.
        message_id: MessageId(0),
        swipe: 0,
        author: message.author.unwrap_or(MembershipId(0)),
        name: message.name,
        role: MessageRole::User,
        text: message.text,
        translated_to: None,
        whisper: None,
        quote: None,
        pictures: Vec::new(),
        tokens: 0,
        created_at: context.now,
        payload: BlockPayload::default(),
        is_required: false,
    });
}

/// Scans the lorebooks of a prompt, whose newest message is the tested text; `count` returns the number of
/// tokens of a text.
///
/// # Errors
/// As [`builder::build`].
pub fn test_in_prompt(
    context: &PromptContext,
    count: &dyn Fn(&str) -> i64,
) -> Result<TestedLore, PromptError> {
    let built = builder::build(context, count)?;
    // The same scan as that of the prompt, because all randomness comes from the context.
    let count_for_model = |text: &str| context.token_factors.apply(text, count(text));
    let lore = lore::activate(context, &mut macro_environment(context), &count_for_model);
    let scan = lore.into_scan().unwrap_or_default();
    let mut block_indexes = HashMap::new();
    for (index, block) in built.blocks.iter().enumerate() {
        if let BlockOrigin::Lore(n) = block.origin {
            block_indexes.entry(n).or_insert(index);
        }
    }
    let mut activated: Vec<_> = scan.activated.iter().cloned().enumerate().collect();
    activated.sort_by_key(|(n, _)| block_indexes.get(n).copied().unwrap_or(usize::MAX));
    Ok(TestedLore {
        activated: activated.into_iter().map(|(_, it)| it).collect(),
        cards: built.cards,
        ..TestedLore::from(scan)
    })
}

/// Scans a lorebook with the default settings, as if the text were the newest message of a conversation
/// with the default preset.
pub fn test_alone(book: Lorebook, text: &str) -> TestedLore {
    let message = ScannedMessage {
        seq: 1,
        name: "",
        text,
    };
    let scan = engine::activate(&ScanRequest {
        lorebooks: &[book],
        settings: ScanSettings {
            include_names: false,
            ..ScanSettings::default()
        },
        messages: &[message],
        n_messages: 1,
        n_replies: 0,
        extra_texts: &[],
        texts: MatchTexts::default(),
        speaker: ScanSpeaker::default(),
        trigger: ScanTrigger::Normal,
        timed_effects: &TimedEffects::default(),
        external_activations: &HashSet::new(),
        expand: &str::to_owned,
        count_tokens: &|_| 0,
        seed: 0,
    });
    let mut tested = TestedLore::from(scan);
    default_order::sort(&mut tested.activated);
    tested
}

impl From<ScanResult> for TestedLore {
    fn from(scan: ScanResult) -> Self {
        Self {
            activated: scan.activated,
            skipped: scan.skipped,
            warnings: scan.warnings,
            cards: Vec::new(),
        }
    }
}
