//! Defines `SpeakerTag`, the current speaker of a response whose model is a character or a space:
//! sets the `metadata` of the items of this speaker (except reasoning), and returns these items. No
//! I/O.

use serde_json::Value;

use crate::item::{ItemBody, OutputItem};

/// The current speaker, if the model has speakers, and the number of items before its first one.
#[derive(Clone, Debug, Default)]
pub struct SpeakerTag {
    speaker: Option<Value>,
    n_before: usize,
}

impl SpeakerTag {
    /// Sets the speaker of all items after the first `n_before`.
    pub fn set(&mut self, speaker: Value, n_before: usize) {
        *self = Self {
            speaker: Some(speaker),
            n_before,
        };
    }

    /// Returns whether a speaker is set.
    pub fn has_speaker(&self) -> bool {
        self.speaker.is_some()
    }

    /// Adds the speaker to an item, except to reasoning.
    pub fn with_metadata(&self, mut item: OutputItem) -> OutputItem {
        if let Some(speaker) = &self.speaker
            && !matches!(item.body, ItemBody::Reasoning(_))
        {
            item.metadata = Some(speaker.clone());
        }
        item
    }

    /// Returns the items of the current speaker.
    pub fn own_items<'a>(&self, items: &'a [OutputItem]) -> &'a [OutputItem] {
        items.get(self.n_before..).unwrap_or_default()
    }

    /// Restores the speaker from an item that was emitted earlier.
    pub fn restore(&mut self, item: &OutputItem, n_before: usize) {
        let speaker = item.metadata.as_ref().filter(|it| it.is_object());
        if let Some(speaker) = speaker.filter(|it| self.speaker.as_ref() != Some(it)) {
            self.set(speaker.clone(), n_before);
        }
    }
}

#[cfg(test)]
mod tests {
    use base::clock::Timestamp;
    use serde_json::{Map, Value, json};

    use crate::event::{EncodedEvent, SequencedEvent, StreamEvent};
    use crate::fold::engine_event::{EngineEvent, ResponseEnd, ResponseOutcome};
    use crate::fold::response_fold::Fold;
    use crate::item::OutputItem;
    use crate::response::ResponseHeader;
    use crate::status::ResponseStatus;

    fn header() -> ResponseHeader {
        ResponseHeader {
            id: "resp_1".to_owned(),
            created_at: Timestamp(0),
            echo: Map::new(),
        }
    }

    fn speaker_changed(name: &str) -> EngineEvent {
        EngineEvent::SpeakerChanged(json!({ "speaker": name }))
    }

    fn text_delta(text: &str) -> EngineEvent {
        EngineEvent::TextDelta(text.to_owned())
    }

    fn completed() -> EngineEvent {
        EngineEvent::Finished(ResponseEnd {
            outcome: ResponseOutcome::Completed,
            usage: None,
            at: Timestamp(1),
        })
    }

    fn apply(fold: &mut Fold, all: &[EngineEvent]) -> Vec<SequencedEvent> {
        let events = all.iter().flat_map(|it| fold.apply(it.clone()));
        let read = |it: EncodedEvent| serde_json::from_str(&it.json).expect("events are JSON");
        events.map(read).collect()
    }

    /// Returns speaker and text of each item.
    fn lines(fold: &Fold) -> Vec<(Value, Value)> {
        let items = fold.items().iter().map(OutputItem::to_value);
        items
            .map(|it| {
                (
                    it["metadata"]["speaker"].clone(),
                    it["content"][0]["text"].clone(),
                )
            })
            .collect()
    }

    #[test]
    fn each_speaker_has_an_item_with_their_name() {
        let mut fold = Fold::new(header(), ResponseStatus::InProgress);
        let all = [
            speaker_changed("Ada"),
            text_delta("One."),
            speaker_changed("Bob"),
            text_delta("Two."),
            completed(),
        ];

        let events = apply(&mut fold, &all);

        let line = |name: &str, text: &str| (json!(name), json!(text));
        assert_eq!(lines(&fold), [line("Ada", "One."), line("Bob", "Two.")]);
        let added = events.into_iter().filter_map(|it| match it.event {
            StreamEvent::ItemAdded(added) => added.item.metadata,
            _ => None,
        });
        let named: Vec<Value> = added.map(|it| it["speaker"].clone()).collect();
        assert_eq!(named, [json!("Ada"), json!("Bob")]);
    }

    #[test]
    fn a_speaker_without_output_gets_an_empty_text() {
        let mut fold = Fold::new(header(), ResponseStatus::InProgress);
        let thought = EngineEvent::ReasoningDelta("Hm.".to_owned());

        apply(
            &mut fold,
            &[
                speaker_changed("Ada"),
                speaker_changed("Bob"),
                thought,
                completed(),
            ],
        );

        let items: Vec<Value> = fold.items().iter().map(OutputItem::to_value).collect();
        let [ada, reasoning, bob] = items.as_slice() else {
            panic!("{items:?}");
        };
        assert_eq!(ada["metadata"]["speaker"], "Ada");
        assert_eq!(reasoning.get("metadata"), None);
        assert_eq!(bob["metadata"]["speaker"], "Bob");
        assert_eq!(bob["content"][0]["text"], "");
    }

    #[test]
    fn a_replayed_fold_keeps_the_speaker() {
        let mut first = Fold::new(header(), ResponseStatus::InProgress);
        let events = apply(
            &mut first,
            &[
                speaker_changed("Ada"),
                text_delta("One."),
                speaker_changed("Bob"),
                text_delta("Tw"),
            ],
        );

        let mut second = Fold::replay(header(), ResponseStatus::InProgress, events);
        apply(&mut second, &[text_delta("o."), completed()]);

        let line = |name: &str, text: &str| (json!(name), json!(text));
        assert_eq!(lines(&second), [line("Ada", "One."), line("Bob", "Two.")]);
    }
}
