//! Tests that people keep control of summaries: edit, restore and forget them.

use troupe::conversations::message::Visibility;
use troupe::memories::memory_deletion;
use troupe::memories::memory_deletion::DeletionScope;
use troupe::memories::summaries::summary::{SummaryOrigin, SummaryStatus};
use troupe::memories::summaries::summary_edit;
use troupe::memories::summaries::summary_edit::{SummaryEdit, SummaryUpdate};

use crate::support::backends::on_both;
use crate::support::summary_fixture::{LONG, has_word, open_summaries, with_content};

on_both! {
    async fn the_text_of_a_person_is_continued_and_not_replaced(backend) {
        let app = open_summaries(backend).await;
        app.talk(LONG).await;

        let change = SummaryEdit { content: Some("Ann owns the ship.".to_owned()), facts: Some(vec!["Vera is a spy.".to_owned()]) };
        let edited = app.edit_summary(change).await;

        assert_eq!((edited.origin, edited.status), (SummaryOrigin::Person, SummaryStatus::Current));
        let prompt = app.prompt().await;
        assert!(prompt.contains("Ann owns the ship.") && prompt.contains("- Vera is a spy."), "{prompt}");
        app.talk(LONG).await;
        let after = app.in_use().await;
        assert!(after.to_seq > edited.to_seq && after.content.starts_with("Ann owns the ship."), "{after:?}");
        assert_eq!(after.facts(), ["Vera is a spy."]);
        app.close_without_events().await;
    }

    async fn a_stale_text_of_a_person_is_regenerated_only_on_request(backend) {
        let app = open_summaries(backend).await;
        app.talk(LONG).await;
        let change = SummaryEdit { content: Some("Ann sold the ship.".to_owned()), facts: Some(vec!["Vera is a spy.".to_owned()]) };
        app.edit_summary(change).await;
        app.edit_covered("W2 ", "Wait and see.").await;

        app.summarize().await;
        let stale = app.in_use().await;
        assert_eq!((stale.status, stale.content.as_str()), (SummaryStatus::Stale, "Ann sold the ship."));
        app.talk(LONG).await;
        let continued = app.in_use().await;
        assert_eq!((continued.status, continued.origin), (SummaryStatus::Stale, SummaryOrigin::Person));
        assert!(continued.to_seq > stale.to_seq && continued.content.starts_with("Ann sold the ship."), "{continued:?}");

        assert!(summary_edit::request_now(&app.db, app.conversation, app.clock.now()).await.unwrap());
        app.summarize().await;

        let after = app.in_use().await;
        assert_eq!((after.origin, after.status), (SummaryOrigin::Model, SummaryStatus::Current));
        assert!(has_word(&after.content, "Wait") && !after.content.contains("Ann sold"), "{}", after.content);
        assert_eq!(after.facts(), ["Vera is a spy."]);
        app.close_without_events().await;
    }

    async fn messages_whose_memory_is_off_are_not_summarized_on_request(backend) {
        let app = open_summaries(backend).await;
        app.talk_without_summaries(LONG / 2).await;
        let switch = async |is_on: &str| {
            app.facts().await.execute(&format!("UPDATE messages SET is_remembered = {is_on}")).await;
        };
        let request = async || {
            summary_edit::request_now(&app.db, app.conversation, app.clock.now()).await.unwrap()
        };

        switch("FALSE").await;
        assert!(!request().await);
        app.summarize().await;
        assert!(app.running().await.is_none());

        switch("TRUE").await;
        assert!(request().await);
        app.close_without_events().await;
    }

    async fn facts_that_are_pinned_after_a_deletion_do_not_bring_the_text_back(backend) {
        let app = open_summaries(backend).await;
        app.talk(LONG).await;
        let deleted = app.message_of("W1 ").await;
        app.engine.set_visibility(app.scope(), deleted.id, Visibility::Hidden).await.unwrap();

        let facts = SummaryEdit { content: None, facts: Some(vec!["Vera is a spy.".to_owned()]) };
        let edited = app.edit_summary(facts).await;

        assert!(!edited.is_usable);
        let prompt = app.prompt().await;
        assert!(!has_word(&prompt, "W1") && prompt.contains("- Vera is a spy."), "{prompt}");
        app.summarize().await;
        let after = app.in_use().await;
        assert!(after.is_usable && !has_word(&after.content, "W1") && has_word(&after.content, "W2"));
        assert_eq!(after.facts(), ["Vera is a spy."]);
        app.close_without_events().await;
    }

    async fn a_version_is_restored_with_its_facts_and_continued(backend) {
        let app = open_summaries(backend).await;
        app.talk(LONG).await;
        let first = app.in_use().await;
        app.edit_summary(with_content("Nothing happened.")).await;
        let by = app.owner().await;

        let restored = summary_edit::restore(&app.db, first.id, app.conversation, by, app.clock.now());
        let restored = restored.await.unwrap().expect("the version exists");

        assert_eq!((&restored.content, restored.to_seq), (&first.content, first.to_seq));
        assert!(restored.version > first.version + 1);
        app.summarize().await;
        assert!(app.in_use().await.content.starts_with(first.content.trim_end()));
        app.close_without_events().await;
    }

    async fn of_two_people_who_edit_one_version_only_the_first_succeeds(backend) {
        let app = open_summaries(backend).await;
        app.talk(LONG).await;
        let of = app.in_use().await;
        let by = app.owner().await;
        let now = app.clock.now();

        let edit = |text: &str| summary_edit::edit(&app.db, &of, with_content(text), (by, of.version), now);
        let (one, other) = tokio::join!(edit("One."), edit("Other."));

        let updates = [one.unwrap(), other.unwrap()];
        let n_updated = updates.iter().filter(|it| matches!(it, Some(SummaryUpdate::Updated(_)))).count();
        let n_stale = updates.iter().filter(|it| matches!(it, Some(SummaryUpdate::Stale(_)))).count();
        assert_eq!((n_updated, n_stale), (1, 1), "{updates:?}");
        app.close_without_events().await;
    }

    async fn what_is_forgotten_is_in_no_summary_and_is_not_summarized_again(backend) {
        let app = open_summaries(backend).await;
        app.talk(LONG).await;
        let n_before = app.row().await.last_seq;

        let scope = DeletionScope::Conversation(app.conversation);
        memory_deletion::delete(&app.db, app.space, scope, app.clock.now()).await.unwrap();

        assert_eq!((app.running().await, app.parts().await), (None, Vec::new()));
        assert!(!app.prompt().await.contains("[Summary of earlier events."));
        app.talk(LONG).await;
        assert_eq!(app.in_use().await.from_seq, n_before + 1);
        app.close_without_events().await;
    }

    async fn forgetting_a_member_deletes_the_summaries_of_what_they_said(backend) {
        let app = open_summaries(backend).await;
        app.talk(LONG).await;

        let scope = DeletionScope::Member(app.user.membership);
        memory_deletion::delete(&app.db, app.space, scope, app.clock.now()).await.unwrap();

        assert_eq!(app.running().await, None);
        app.close_without_events().await;
    }
}
