//! Tests which messages an entry of the cache of histories has for a prompt.

use std::sync::Arc;

use base::clock::Timestamp;
use base::ids::{MembershipId, MessageId};

use super::{CachedHistory, HistoryPart, MESSAGE_OVERHEAD};
use crate::conversations::audience::message_audience::Audience;
use crate::conversations::audience::viewer::Viewer;
use crate::conversations::message::MessageRole;
use crate::prompt::loading::history_filter::HistoryFilter;
use crate::prompt::loading::history_query::HistoryMessage;

/// Creates an entry with the messages 11 to 15 of 10 tokens each.
fn entry(is_whole: bool) -> CachedHistory {
    let message = |seq| HistoryMessage {
        id: MessageId(seq),
        seq,
        space_membership_id: MembershipId(1),
        persona_id: None,
        persona_name: None,
        role: MessageRole::User,
        content: "Hi.".to_owned(),
        active_swipe: 0,
        reply_to_message_id: None,
        has_attachments: false,
        audience: None,
        created_at: Timestamp(seq),
        token_count: 10 - MESSAGE_OVERHEAD,
    };
    CachedHistory {
        rev: 1,
        last_seq: 15,
        messages: (11..=15).map(|seq| Arc::new(message(seq))).collect(),
        is_whole,
        max_messages: 100,
    }
}

/// The same with two whispers between the members 1 and 2: the messages 12 and 14.
fn entry_with_whispers(is_whole: bool) -> CachedHistory {
    let mut entry = entry(is_whole);
    for at in [1, 3] {
        let whisper = Arc::make_mut(&mut entry.messages[at]);
        whisper.audience = Audience::new([1, 2].map(MembershipId));
    }
    entry
}

fn part(speaker: i64, cutoff_seq: i64, available_tokens: i64) -> HistoryPart {
    HistoryPart {
        cutoff_seq,
        available_tokens,
        filter: HistoryFilter::new(MembershipId(speaker), &[], Viewer::Server),
    }
}

fn found(entry: &CachedHistory, part: &HistoryPart) -> Option<Vec<i64>> {
    let found = entry.fitting(part)?;
    Some(found.iter().map(|it| it.seq).collect())
}

fn seqs(entry: &CachedHistory, cutoff_seq: i64, available_tokens: i64) -> Option<Vec<i64>> {
    found(entry, &part(1, cutoff_seq, available_tokens))
}

#[test]
fn the_newest_messages_that_fit_and_one_more_are_found() {
    let entry = entry(false);
    assert_eq!(seqs(&entry, 99, 30), Some(vec![12, 13, 14, 15]));
    assert_eq!(seqs(&entry, 99, 39), Some(vec![12, 13, 14, 15]));
    assert_eq!(seqs(&entry, 99, 0), Some(vec![15]));
    assert_eq!(seqs(&entry, 13, 20), Some(vec![11, 12, 13]));
}

#[test]
fn nothing_is_found_if_an_older_message_could_fit() {
    assert_eq!(seqs(&entry(false), 99, 50), None);
    assert_eq!(seqs(&entry(false), 12, 30), None);
}

#[test]
fn a_whole_conversation_fits_any_window() {
    let all = Some(vec![11, 12, 13, 14, 15]);
    assert_eq!(seqs(&entry(true), 99, 50), all);
    assert_eq!(seqs(&entry(true), 99, 1_000), all);
    assert_eq!(seqs(&entry(true), 10, 1_000), Some(vec![]));
}

#[test]
fn whispers_that_the_speaker_did_not_hear_use_no_space() {
    let entry = entry_with_whispers(false);

    assert_eq!(found(&entry, &part(2, 99, 20)), Some(vec![13, 14, 15]));
    assert_eq!(found(&entry, &part(3, 99, 20)), Some(vec![11, 13, 15]));
    assert_eq!(found(&entry, &part(3, 99, 30)), None, "older ones may fit");
    let whole = entry_with_whispers(true);
    assert_eq!(found(&whole, &part(3, 99, 30)), Some(vec![11, 13, 15]));
}

#[test]
fn a_prompt_that_is_shown_contains_only_what_the_reader_sees_too() {
    let entry = entry_with_whispers(true);
    let for_reader = |reader| HistoryPart {
        filter: HistoryFilter::new(MembershipId(2), &[], reader),
        ..part(2, 99, 100)
    };

    let all = vec![11, 12, 13, 14, 15];
    let of_audience = for_reader(Viewer::Member(MembershipId(1)));
    assert_eq!(found(&entry, &of_audience), Some(all));
    for outside in [Viewer::Member(MembershipId(3)), Viewer::Outsider] {
        assert_eq!(
            found(&entry, &for_reader(outside)),
            Some(vec![11, 13, 15]),
            "{outside:?}"
        );
    }
}

#[test]
fn a_character_that_remembers_only_what_it_heard_needs_no_older_messages() {
    let heard_since = |seq| {
        let mut part = part(1, 99, 100);
        part.filter.heard_since = Some(Timestamp(seq));
        part
    };

    assert_eq!(
        found(&entry(false), &heard_since(14)),
        Some(vec![14, 15]),
        "the entry begins before it joined"
    );
    assert_eq!(found(&entry(false), &heard_since(11)), None);
    assert_eq!(found(&entry(true), &heard_since(16)), Some(vec![]));
}
