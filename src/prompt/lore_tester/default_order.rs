//! Sorts lore as in a prompt with the default preset and a long history. For another preset, the prompt itself
//! must be built.

use std::cmp::Reverse;

use tavern::lorebook::engine_lorebook::InsertionPosition;
use tavern::lorebook::scan_result::ActivatedEntry;

use crate::prompt::author_note::AuthorNote;
use crate::prompt::cards::depth_insertion::role_rank;

/// Sorts the activated entries of a scan by the position of their texts in the prompt. Those of an outlet are
/// last.
pub fn sort(activated: &mut [ActivatedEntry]) {
    let note_depth = AuthorNote::default().depth;
    activated.sort_by_key(|it| rank(&it.position, note_depth));
}

/// Returns the rank of a position: by the part of the prompt, then by depth, the highest first, then by role.
/// The author's note is the last block at its depth.
fn rank(position: &InsertionPosition, note_depth: usize) -> (u8, Reverse<usize>, u8) {
    const MESSAGES: u8 = 6;
    let part = |part: u8| (part, Reverse(0), 0);
    match position {
        InsertionPosition::BeforeCharacter => part(0),
        InsertionPosition::Personality => part(1),
        InsertionPosition::Scenario => part(2),
        InsertionPosition::AfterCharacter => part(3),
        InsertionPosition::BeforeExamples => part(4),
        InsertionPosition::AfterExamples => part(5),
        InsertionPosition::AtDepth { depth, role } => (MESSAGES, Reverse(*depth), role_rank(*role)),
        InsertionPosition::NoteTop => (MESSAGES, Reverse(note_depth), u8::MAX - 1),
        InsertionPosition::NoteBottom => (MESSAGES, Reverse(note_depth), u8::MAX),
        InsertionPosition::Outlet(_) => part(MESSAGES + 1),
    }
}
