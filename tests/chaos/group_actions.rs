//! Actions of users in a group: whisper, take or skip the own turn, and read what contains messages.

use std::time::Duration;

use rand::RngExt;
use rand::seq::SliceRandom;
use reqwest::Method;
use tokio::time::sleep;

use crate::record::Post;
use crate::spaces::SpaceConversation;
use crate::text_keys;
use crate::user_actions::SimulatedUser;

/// The longest time until a user posts after `your_turn`. The shortest turns last three seconds.
const MAX_REACTION_TIME: Duration = Duration::from_millis(1_500);

impl SimulatedUser {
    /// Posts in the own turn, skips it, or does nothing until it is over. Returns whether it has done
    /// anything.
    pub async fn use_own_turn(&mut self, n: usize) -> bool {
        let turn_in = self.tab.take_new_turn();
        let conversations = &self.guest.conversations;
        let turn_in = conversations
            .iter()
            .find(|it| Some(it.conversation) == turn_in);
        let Some(space_conversation) = turn_in.cloned() else {
            return false;
        };
        match self.rng.random_range(0..10) {
            0..5 => {
                let reaction = MAX_REACTION_TIME.mul_f64(self.rng.random_range(0.0..1.0));
                sleep(reaction).await;
                self.post(&space_conversation, n).await;
            }
            5..7 => self.skip(&space_conversation).await,
            _ => return false,
        }
        true
    }

    /// Returns whom a message mentions: sometimes another user where people take turns, because in natural
    /// order only a mentioned one gets a turn.
    pub fn mentioned(&mut self, space_conversation: &SpaceConversation) -> Vec<i64> {
        let others = &space_conversation.others;
        let mentions = space_conversation.takes_turns && self.rng.random_range(0..3) == 0;
        if !mentions || others.is_empty() {
            return Vec::new();
        }
        vec![others[self.rng.random_range(0..others.len())]]
    }

    /// Whispers to people, to a character, or to both.
    pub async fn whisper(&mut self, space_conversation: &SpaceConversation, n: usize) {
        let mut others = space_conversation.others.clone();
        others.shuffle(&mut self.rng);
        others.truncate(self.rng.random_range(0..3));
        let n_characters = space_conversation.characters.len();
        let character = space_conversation.characters[self.rng.random_range(0..n_characters)];
        let hears = others.is_empty() || self.rng.random_range(0..2) == 0;
        others.extend(hears.then_some(character));
        others.push(space_conversation.membership);
        let key = format!("c{}-{n}", self.guest.index);
        let post = Post {
            client: self.guest.index,
            conversation: space_conversation.conversation,
            content: text_keys::whisper(&key, ""),
            key,
            audience: others,
            expects_reply: space_conversation.expects_reply && hears,
            ..Post::default()
        };
        self.send(space_conversation, post).await;
    }

    /// Reads what shows messages outside of the tab. What the responses contain is recorded.
    pub async fn look_around(&mut self, space_conversation: &SpaceConversation) {
        let SpaceConversation {
            space,
            conversation,
            ..
        } = space_conversation;
        let speakers = &space_conversation.characters;
        let speaker = speakers[self.rng.random_range(0..speakers.len())];
        let path = match self.rng.random_range(0..7) {
            0 => format!("/api/conversations/{conversation}"),
            1 => format!("/api/spaces/{space}/conversations"),
            2 => format!("/api/search?q=whispers&space_id={space}"),
            3 => format!("/api/conversations/{conversation}/export?format=jsonl"),
            4 => format!("/api/conversations/{conversation}/prompt?speaker_id={speaker}"),
            5 => format!("/api/conversations/{conversation}/runs?limit=20"),
            _ => format!("/api/conversations/{conversation}/messages?limit=50"),
        };
        self.request(Method::GET, &path, None).await;
    }
}
