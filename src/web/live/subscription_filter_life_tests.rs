//! Property test of the filter: a client that subscribes at any moment of a conversation ends up
//! with the same state as a client that was subscribed from the beginning.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use realtime::event::{Envelope, Payload, StreamBoundary, utf16_len};
use realtime::outbox::{NextItem, Outbox};
use uuid::Uuid;

use super::life_server::{HERE, ServerAction, ServerState, TimelineStep, server_actions};
use super::{FilterDecision, SnapshotPosition, SubscriptionFilter};

/// What a client knows. It panics where a browser would have to ask again.
#[derive(Clone, Debug, Default, PartialEq)]
struct Client {
    /// What each durable event told, in short: its number.
    timeline: BTreeSet<i64>,
    stream: Option<(Uuid, String)>,
}

impl Client {
    fn apply(&mut self, cargo: &Payload) {
        match cargo {
            Payload::Frame { rev: Some(rev), .. } => {
                assert!(self.timeline.insert(*rev), "told twice");
            }
            Payload::Stream {
                run,
                mark: StreamBoundary::Start,
                ..
            } => {
                assert!(self.stream.is_none(), "a run begins while another writes");
                self.stream = Some((*run, String::new()));
            }
            Payload::Stream { run, mark, .. } => {
                let (writes, text) = self.stream.as_mut().expect("a run writes");
                assert_eq!(writes, run);
                match mark {
                    StreamBoundary::Reset => text.clear(),
                    StreamBoundary::Stop => self.stream = None,
                    _ => {}
                }
            }
            Payload::Delta(delta) => self.read(delta.offset, &delta.text),
            other => panic!("nothing else was published: {other:?}"),
        }
    }

    fn read(&mut self, offset: usize, piece: &str) {
        let (_, text) = self.stream.as_mut().expect("a run writes");
        assert_eq!(offset, utf16_len(text), "a browser sees a gap");
        text.push_str(piece);
    }
}

/// A client behind an outbox, in each of the states of a subscription.
struct LateSubscriber {
    outbox: Arc<Outbox>,
    buffered: Vec<Arc<Envelope>>,
    start: SnapshotPosition,
    filter: Option<SubscriptionFilter>,
    client: Client,
}

impl LateSubscriber {
    fn new() -> Self {
        Self {
            outbox: Outbox::new(),
            buffered: Vec::new(),
            start: SnapshotPosition::default(),
            filter: None,
            client: Client::default(),
        }
    }

    fn read_rev(&mut self, world: &ServerState) {
        self.start.rev = world.rev;
        self.client.timeline = (1..=world.rev).collect();
    }

    fn read_running(&mut self, world: &ServerState) {
        self.start.running = world.running.map(|run| (run, 0));
    }

    fn read_live_text(&mut self, world: &ServerState) {
        self.outbox.push_barrier(HERE);
        let Some((run, length)) = &mut self.start.running else {
            return;
        };
        let live = world.live.as_ref().filter(|it| it.0 == *run);
        let text = live.map(|it| it.1.clone()).unwrap_or_default();
        *length = utf16_len(&text);
        self.client.stream = Some((*run, text));
    }

    fn answer(&mut self, world: &ServerState) {
        let mut held = std::mem::take(&mut self.buffered);
        self.filter = Some(SubscriptionFilter::new(self.start, &mut held));
        for envelope in held {
            self.filter_and_apply(&envelope, world);
        }
    }

    /// The socket's task looks into its outbox.
    fn drain(&mut self, world: &ServerState) {
        while let Some(next) = self.outbox.try_next() {
            match (next, &self.filter) {
                (NextItem::Envelope(it), None) => self.buffered.push(it),
                (NextItem::Envelope(it), Some(_)) => self.filter_and_apply(&it, world),
                (NextItem::Barrier(_), _) => self.answer(world),
                (other, _) => panic!("so much never waits: {other:?}"),
            }
        }
    }

    fn filter_and_apply(&mut self, envelope: &Envelope, world: &ServerState) {
        let filter = self.filter.as_mut().unwrap();
        match filter.decide(&envelope.payload) {
            FilterDecision::Drop => {}
            FilterDecision::Forward => self.client.apply(&envelope.payload),
            FilterDecision::ForwardRest(json) => {
                let frame: serde_json::Value = serde_json::from_str(&json).unwrap();
                let offset = frame["offset"].as_u64().unwrap() as usize;
                self.client.read(offset, frame["delta"].as_str().unwrap());
            }
            FilterDecision::Repair { run, end } => {
                let live = world.live.as_ref().filter(|it| it.0 == run);
                let text = live.map(|it| it.1.as_str());
                if filter.repair(run, end, text) {
                    let (_, shown) = self.client.stream.as_mut().expect("a run writes");
                    *shown = text.unwrap().to_owned();
                }
            }
            FilterDecision::Resync => panic!("no durable event was missing"),
        }
    }
}

/// When the late client takes its steps, as acts that have happened by then; rising.
type Moments = [usize; 4];

/// Plays the story. `takes`: whether the socket's task runs after an act; `misses`: whether a
/// piece of text gets lost on its way to the late client.
fn run_scenario(
    scenes: &[TimelineStep],
    moments: Moments,
    end: usize,
    takes: &[bool],
    misses: &[bool],
) -> [Client; 2] {
    let acts = server_actions(scenes);
    let at = |fraction: usize| fraction * acts.len() / 1000;
    let [listen, rev, running, live] = moments.map(at);
    let rest = &acts[at(end).max(live).min(acts.len() - 1)..];
    let quiet = rest
        .iter()
        .position(|it| matches!(it, ServerAction::Quiet))
        .unwrap();
    let n_acts = acts.len() - rest.len() + quiet + 1;

    let mut world = ServerState::default();
    let mut early = Client::default();
    let mut late = None;
    for (n, act) in acts[..n_acts].iter().enumerate() {
        if n == listen {
            late = Some(LateSubscriber::new());
        }
        if let Some(late) = &mut late {
            if n == rev {
                late.read_rev(&world);
            }
            if n == running {
                late.read_running(&world);
            }
            if n == live {
                late.read_live_text(&world);
            }
        }
        if let Some(envelope) = world.apply(act) {
            early.apply(&envelope.payload);
            let missed =
                matches!(act, ServerAction::Say(_)) && misses.get(n).copied().unwrap_or(false);
            if let Some(late) = &late
                && !missed
            {
                late.outbox.push(&envelope);
            }
        }
        if let Some(late) = &mut late
            && takes.get(n).copied().unwrap_or(true)
        {
            late.drain(&world);
        }
    }
    let mut late = late.expect("it came");
    late.drain(&world);
    [early, late.client]
}

fn timeline_step() -> impl Strategy<Value = TimelineStep> {
    let piece = prop_oneof![
        4 => "[a-zé😀]{1,3}",
        1 => Just(String::new()),
        1 => Just(".".to_owned()),
    ];
    let run = (proptest::collection::vec(piece, 0..8), any::<bool>());
    prop_oneof![
        1 => Just(TimelineStep::Post),
        3 => run.prop_map(|(pieces, succeeds)| TimelineStep::Run { pieces, succeeds }),
    ]
}

fn moments() -> impl Strategy<Value = Moments> {
    any::<[u16; 4]>().prop_map(|it| {
        let mut moments = it.map(|it| usize::from(it) % 1000);
        moments.sort_unstable();
        moments
    })
}

fn random_bools() -> impl Strategy<Value = Vec<bool>> {
    proptest::collection::vec(any::<bool>(), 0..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_late_client_knows_what_an_early_one_knows(
        scenes in proptest::collection::vec(timeline_step(), 1..5),
        moments in moments(),
        end in 0..1000usize,
        takes in random_bools(),
    ) {
        let [veteran, late] = run_scenario(&scenes, moments, end, &takes, &[]);

        prop_assert_eq!(veteran, late);
    }

    #[test]
    fn text_that_gets_lost_on_the_way_is_mended(
        scenes in proptest::collection::vec(timeline_step(), 1..5),
        moments in moments(),
        takes in random_bools(),
        misses in random_bools(),
    ) {
        let [veteran, late] = run_scenario(&scenes, moments, 999, &takes, &misses);

        prop_assert_eq!(veteran, late);
    }
}
