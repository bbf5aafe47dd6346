//! Tests of the lorebooks of several characters: which of them take part in a prompt.

use serde_json::{Value, json};

use crate::support::app::TestApp;
use crate::support::backends::{TestBackend, on_both};
use crate::support::http_client::{HttpClient, expect, id, root_of};

/// A space with the characters Ada, Cid and Dot, of which Dot is muted, and a message about a gull.
struct LoreGroup {
    app: TestApp,
    owner: HttpClient,
    space: i64,
    conversation: i64,
    characters: Vec<Value>,
    memberships: Vec<i64>,
}

/// Returns a card with a lorebook that contains one entry.
fn card(name: &str, book: &str, content: &str) -> Value {
    json!({"name": name, "character_book": {"name": book, "entries": [entry(content)]}})
}

/// Returns an entry that the message about a gull activates.
fn entry(content: &str) -> Value {
    json!({"keys": ["gull"], "content": content, "name": content, "enabled": true, "insertion_order": 1, "extensions": {}})
}

impl LoreGroup {
    async fn open(backend: TestBackend, mode: &str, cards: [Value; 3]) -> Self {
        let app = TestApp::start(backend).await;
        let owner = app.admin().await;
        let rules = json!({"reply_order": "manual", "card_handling_mode": mode});
        let space = owner.create_space("Harbor", rules).await;
        let (mut characters, mut memberships) = (Vec::new(), Vec::new());
        for card in cards {
            let character = expect(201, owner.post("/api/characters", card).await);
            memberships.push(id(&owner.add_character(&space, &character).await));
            characters.push(character);
        }
        let muted = json!({"participation": "muted"});
        let dot = format!("/api/memberships/{}", memberships[2]);
        expect(200, owner.patch(&dot, muted).await);
        let conversation = root_of(&space);
        let posted = owner.post_message(conversation, "A gull cries.", None);
        expect(201, posted.await);
        Self {
            app,
            owner,
            space: id(&space),
            conversation,
            characters,
            memberships,
        }
    }

    async fn open_default(backend: TestBackend, mode: &str) -> Self {
        let cards = [
            card("Ada", "Ada's", "{{char}} counts gulls."),
            card("Cid", "Cid's", "{{char}} feeds gulls."),
            card("Dot", "Dot's", "{{char}} hunts gulls."),
        ];
        Self::open(backend, mode, cards).await
    }

    /// Creates a lorebook with one entry in the library, and returns its id.
    async fn create_book(&self, name: &str, content: &str) -> i64 {
        let book = json!({"name": name, "entries": [entry(content)]});
        id(&expect(201, self.owner.post("/api/lorebooks", book).await))
    }

    async fn link(&self, nth: usize, books: &[i64]) {
        let path = format!("/api/characters/{}/lorebooks", id(&self.characters[nth]));
        let links = json!({"lorebook_ids": books});
        expect(200, self.owner.put(&path, links).await);
    }

    async fn preview(&self, nth: usize) -> Value {
        let speaker = self.memberships[nth];
        let path = format!(
            "/api/conversations/{}/prompt?speaker_id={speaker}",
            self.conversation
        );
        expect(200, self.owner.get(&path).await)
    }

    /// Returns the names of the lorebooks of the activated entries, in the order of their texts, if the
    /// `nth` character speaks.
    async fn books(&self, nth: usize) -> Vec<String> {
        let prompt = self.preview(nth).await;
        let entries = prompt["lore"].as_array().unwrap().iter();
        entries
            .map(|it| it["book"].as_str().unwrap().to_owned())
            .collect()
    }
}

on_both! {
    async fn joined_cards_add_the_lorebooks_of_all_included_members(backend) {
        let group = LoreGroup::open_default(backend, "append").await;
        let linked = group.create_book("Tides", "Gulls follow the tide.").await;
        group.link(1, &[linked]).await;

        // Of equal orders, the text of the first in precedence comes last.
        assert_eq!(group.books(0).await, ["Tides", "Cid's", "Ada's"]);
        assert_eq!(group.books(1).await, ["Ada's", "Tides", "Cid's"], "the speaker's books are not the first ones");
        assert_eq!(group.books(2).await, ["Tides", "Cid's", "Ada's", "Dot's"], "a muted speaker's own book is missing");
        group.app.close().await;
    }

    async fn the_lorebooks_of_muted_members_take_part_if_their_cards_are_joined(backend) {
        let group = LoreGroup::open_default(backend, "append_disabled").await;

        assert_eq!(group.books(0).await, ["Dot's", "Cid's", "Ada's"]);
        group.app.close().await;
    }

    async fn swapped_cards_add_only_the_lorebooks_of_the_speaker(backend) {
        let group = LoreGroup::open_default(backend, "swap").await;

        assert_eq!(group.books(0).await, ["Ada's"]);
        assert_eq!(group.books(1).await, ["Cid's"]);
        group.app.close().await;
    }

    async fn char_means_the_speaker_in_the_lore_of_another_member(backend) {
        let group = LoreGroup::open_default(backend, "append").await;

        let messages = group.preview(0).await["messages"].to_string();

        assert!(messages.contains("Ada feeds gulls."), "{messages}");
        assert!(!messages.contains("Cid feeds gulls."), "{messages}");
        group.app.close().await;
    }

    async fn a_book_of_another_member_counts_once(backend) {
        let same = |name| card(name, "Coast", "Gulls steal.");
        let group = LoreGroup::open(backend, "append_disabled", [same("Ada"), same("Cid"), same("Dot")]).await;
        let linked = group.create_book("Tides", "Gulls follow the tide.").await;
        let copy = group.create_book("Copy of Coast", "Gulls steal.").await;
        group.link(0, &[linked]).await;
        group.link(1, &[copy, linked]).await;

        assert_eq!(group.books(0).await, ["Tides", "Coast"]);
        assert_eq!(group.books(1).await, ["Tides", "Coast"]);
        group.app.close().await;
    }

    async fn a_lorebook_of_a_card_is_not_scanned_again_if_its_copy_is_linked_to_the_space(backend) {
        let group = LoreGroup::open_default(backend, "append").await;
        let copy = group.create_book("Library", "{{char}} counts gulls.").await;

        let path = format!("/api/spaces/{}/lorebooks", group.space);
        expect(200, group.owner.put(&path, json!({"lorebook_ids": [copy]})).await);

        assert_eq!(group.books(0).await, ["Library", "Cid's"]);
        group.app.close().await;
    }

    async fn the_lorebook_that_each_joined_card_names_takes_part(backend) {
        let named = |name: &str, world: &str| json!({"name": name, "extensions": {"world": world}});
        let group = LoreGroup::open(backend, "append", [named("Ada", "Tides"), named("Cid", " Coast "), named("Dot", "Coast")]).await;
        group.create_book("Coast", "Gulls steal.").await;
        group.create_book("Tides", "Gulls follow the tide.").await;

        assert_eq!(group.books(0).await, ["Coast", "Tides"]);
        group.app.close().await;
    }

    async fn the_filter_of_an_entry_means_the_speaker_also_in_the_book_of_another_member(backend) {
        let mut filtered = card("Cid", "Cid's", "Only for Ada.");
        filtered["character_book"]["entries"][0]["extensions"]["character_filter"] = json!({"names": ["Ada"]});
        let plain = |name: &str| json!({"name": name});
        let group = LoreGroup::open(backend, "append", [plain("Ada"), filtered, plain("Dot")]).await;

        assert_eq!(group.books(0).await, ["Cid's"]);
        assert_eq!(group.books(1).await, Vec::<String>::new());
        group.app.close().await;
    }
}
