//! Tests the summaries of branches: what is copied, what is made again, and that a branch and its parent do
//! not affect each other.

use realtime::topic::Topic;
use troupe::conversations::audience::viewer::Viewer;
use troupe::conversations::message::Visibility;
use troupe::conversations::{conversation, message};
use troupe::memories::memory_deletion;
use troupe::memories::memory_deletion::DeletionScope;
use troupe::memories::summaries::summary;
use troupe::memories::summaries::summary::{SummaryOrigin, SummaryStatus};
use troupe::memories::summaries::summary_edit::SummaryEdit;

use crate::support::backends::on_both;
use crate::support::engine_test::EngineTest;
use crate::support::event_recorder::EventRecorder;
use crate::support::summary_fixture::{LONG, has_word, open_summaries, with_content};

impl EngineTest {
    /// Branches at a message with this `seq`, and talks in the branch from now on.
    async fn enter_branch(&mut self, fork_seq: i64) -> conversation::Model {
        let at = self.message_at(fork_seq).await;
        let made = self
            .engine
            .branch(self.conversation, at.id, "Another way".to_owned());
        let branch = made.await.expect("the branch was not created");
        let topic = Topic::Conversation(branch.id);
        self.events = EventRecorder::subscribe(&self.engine.context().hub, topic);
        self.conversation = branch.id;
        self.user.conversation = branch.id;
        self.row().await
    }

    async fn message_at(&self, seq: i64) -> message::Model {
        let mut all = self.messages().await.into_iter();
        all.find(|it| it.seq == seq).expect("the message")
    }

    async fn part_rows(&self) -> Vec<summary::Model> {
        let parts = summary::list_parts(self.db.reader(), self.conversation);
        parts.await.expect("the database answers")
    }
}

on_both! {
    async fn a_branch_has_the_summaries_that_end_before_its_fork(backend) {
        let mut app = open_summaries(backend).await;
        app.talk(LONG).await;
        let facts = SummaryEdit { content: None, facts: Some(vec!["Vera is a spy.".to_owned()]) };
        let of_parent = app.edit_summary(facts).await;
        let parts = app.parts().await;

        let branch = app.enter_branch(of_parent.to_seq).await;

        let copied = app.in_use().await;
        assert_ne!(copied.id, of_parent.id);
        let same = summary::Model { id: copied.id, conversation_id: branch.id, ..of_parent.clone() };
        assert_eq!(copied, same);
        assert_eq!(app.parts().await, parts);
        assert_eq!(branch.summary_goal_seq, of_parent.to_seq);
        assert_eq!(app.summarize().await, 0, "nothing is missing");
        app.talk(LONG).await;
        let after = app.in_use().await;
        assert!(after.to_seq > copied.to_seq && after.content.starts_with(&copied.content), "{after:?}");
        assert_eq!(after.facts(), ["Vera is a spy."]);
        let prompt = app.prompt().await;
        assert!(has_word(&prompt, "W1") && prompt.contains("- Vera is a spy."), "{prompt}");
        app.close_without_events().await;
    }

    async fn what_a_summary_says_about_later_messages_is_not_in_the_branch(backend) {
        let mut app = open_summaries(backend).await;
        app.talk(2 * LONG).await;
        let versions = summary::list_running(app.db.reader(), app.conversation).await.unwrap();
        assert!(versions.len() > 1, "{versions:?}");
        let older = versions.last().unwrap().clone();
        let facts = SummaryEdit { content: None, facts: Some(vec!["Vera is a spy.".to_owned()]) };
        let newest = app.edit_summary(facts).await;
        assert!(newest.to_seq > older.to_seq);

        app.enter_branch(older.to_seq).await;

        let copied = app.in_use().await;
        assert_eq!((copied.to_seq, &copied.content, copied.status), (older.to_seq, &older.content, SummaryStatus::Current));
        assert_eq!(copied.facts(), [] as [&str; 0], "the fact was pinned for a later version");
        assert!(app.parts().await.iter().all(|it| it.1 <= older.to_seq));
        app.close_without_events().await;
    }

    async fn a_summary_that_spans_the_fork_is_made_again_from_the_parts_before_it(backend) {
        let mut app = open_summaries(backend).await;
        app.talk(LONG).await;
        let (first, spanning) = (app.parts().await[0], app.in_use().await);
        assert!(first.1 + 5 < spanning.to_seq, "{first:?}");

        app.enter_branch(first.1 + 5).await;

        assert_eq!(app.parts().await, [first]);
        assert_eq!(app.running().await, None);
        app.summarize().await;
        let made = app.in_use().await;
        assert_eq!((made.from_seq, made.to_seq), first);
        assert!(has_word(&made.content, "W1") && made.content.len() < spanning.content.len(), "{}", made.content);
        app.talk(LONG).await;
        assert!(app.in_use().await.to_seq > made.to_seq);
        app.close_without_events().await;
    }

    async fn a_branch_before_all_summaries_has_none(backend) {
        let mut app = open_summaries(backend).await;
        app.talk(LONG).await;

        let branch = app.enter_branch(4).await;

        assert_eq!((app.running().await, app.parts().await), (None, Vec::new()));
        assert_eq!((branch.summary_from_seq, branch.summary_goal_seq), (1, 0));
        assert_eq!(app.summarize().await, 0);
        app.close_without_events().await;
    }

    async fn a_change_in_the_parent_does_not_affect_the_branch_and_the_reverse(backend) {
        let mut app = open_summaries(backend).await;
        app.talk(LONG).await;
        let (parent, end) = (app.conversation, app.in_use().await.to_seq);
        app.enter_branch(end).await;
        let branch = app.conversation;

        app.edit_covered("W2 ", "Wait and see.").await;
        app.summarize().await;
        let corrected = app.in_use().await;
        assert!(has_word(&corrected.content, "Wait"), "{}", corrected.content);

        app.conversation = parent;
        let kept = app.in_use().await;
        assert!(kept.status == SummaryStatus::Current && !has_word(&kept.content, "Wait"), "{kept:?}");
        let hidden = app.message_of("W3 ").await;
        app.engine.set_visibility((parent, Viewer::Server), hidden.id, Visibility::Hidden).await.unwrap();
        assert!(!app.in_use().await.is_usable);
        app.conversation = branch;
        assert_eq!(app.in_use().await, corrected);
        app.close_without_events().await;
    }

    async fn a_branch_of_a_conversation_with_a_deleted_message_gets_a_summary_without_it(backend) {
        let mut app = open_summaries(backend).await;
        app.talk(LONG).await;
        let facts = SummaryEdit { content: None, facts: Some(vec!["Vera is a spy.".to_owned()]) };
        let end = app.edit_summary(facts).await.to_seq;
        let deleted = app.message_of("W1 ").await;
        app.engine.set_visibility(app.scope(), deleted.id, Visibility::Hidden).await.unwrap();

        app.enter_branch(end).await;

        assert!(!app.in_use().await.is_usable);
        let prompt = app.prompt().await;
        assert!(!has_word(&prompt, "W1") && prompt.contains("- Vera is a spy."), "{prompt}");
        app.summarize().await;
        let made = app.in_use().await;
        assert!(made.is_usable && !has_word(&made.content, "W1") && has_word(&made.content, "W2"), "{}", made.content);
        assert_eq!(made.facts(), ["Vera is a spy."]);
        app.close_without_events().await;
    }

    async fn an_older_version_is_made_again_in_a_branch_if_an_edited_message_may_be_in_it(backend) {
        let mut app = open_summaries(backend).await;
        app.talk(2 * LONG).await;
        let versions = summary::list_running(app.db.reader(), app.conversation).await.unwrap();
        let older = versions.last().unwrap().clone();
        app.edit_covered("W2 ", "Wait and see.").await;

        app.enter_branch(older.to_seq).await;

        assert_eq!(app.in_use().await.status, SummaryStatus::Stale);
        app.summarize().await;
        let made = app.in_use().await;
        assert_eq!((made.status, made.to_seq), (SummaryStatus::Current, older.to_seq));
        assert!(has_word(&made.content, "Wait"), "{}", made.content);
        assert!(app.part_rows().await.iter().all(|it| it.status == SummaryStatus::Current));
        app.close_without_events().await;
    }

    async fn the_text_of_a_person_stays_theirs_in_a_branch(backend) {
        let mut app = open_summaries(backend).await;
        app.talk(LONG).await;
        let edited = app.edit_summary(with_content("Ann owns the ship.")).await;

        app.enter_branch(edited.to_seq).await;

        let copied = app.in_use().await;
        assert_eq!((copied.origin, copied.created_by), (SummaryOrigin::Person, edited.created_by));
        assert_eq!(copied.content, "Ann owns the ship.");
        app.close_without_events().await;
    }

    async fn a_long_branch_has_the_summaries_when_its_job_ends(backend) {
        let mut app = open_summaries(backend).await;
        app.talk(LONG).await;
        let of_parent = app.in_use().await;
        let grow = format!("UPDATE messages SET content = content || '{}' WHERE conversation_id = {} AND seq = 1", " and on".repeat(40_000), app.conversation.0);
        app.facts().await.execute(&grow).await;

        app.enter_branch(of_parent.to_seq).await;

        let copied = app.in_use().await;
        assert_eq!((copied.content, copied.to_seq), (of_parent.content, of_parent.to_seq));
        app.close_without_events().await;
    }

    async fn what_was_forgotten_is_not_summarized_in_a_branch(backend) {
        let mut app = open_summaries(backend).await;
        app.talk(LONG).await;
        let now = app.clock.now();
        let scope = DeletionScope::Conversation(app.conversation);
        memory_deletion::delete(&app.db, app.space, scope, now).await.unwrap();
        let last = app.messages().await.last().unwrap().seq;

        let branch = app.enter_branch(last - 10).await;

        assert_eq!((branch.summary_from_seq, branch.summary_goal_seq), (last - 9, last - 10));
        app.talk(LONG).await;
        let made = app.in_use().await;
        assert!(made.from_seq == last - 9 && !has_word(&made.content, "W1"), "{made:?}");
        app.close_without_events().await;
    }
}
