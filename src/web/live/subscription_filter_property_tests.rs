//! Property tests of the subscription filter: a client that subscribes at any moment of a
//! conversation ends with the same state as a client that was subscribed from the beginning.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use realtime::envelope::{Envelope, Payload, Protocol, StreamBoundary, stream_handle, utf16_len};
use realtime::outbox::{NextItem, Outbox};
use serde_json::Value;
use uuid::Uuid;

use super::simulated_server::{HERE, ServerAction, ServerState, TimelineStep, server_actions};
use super::{FilterDecision, SnapshotPosition, SubscriptionFilter};

/// The state of a client. It panics where a browser would have to subscribe again.
#[derive(Clone, Debug, Default, PartialEq)]
struct Client {
    /// The `rev` of each durable event.
    timeline: BTreeSet<i64>,
    stream: Option<(Uuid, String)>,
    /// The handle and the text of the same stream, as read from the frames of protocol 2.
    short_stream: Option<(i64, String)>,
}

impl Client {
    fn apply(&mut self, envelope: &Envelope) {
        self.apply_short_frame(envelope);
        match &envelope.payload {
            Payload::Frame { rev: Some(rev), .. } => {
                assert!(self.timeline.insert(*rev), "the same event twice");
            }
            Payload::Stream(event) if event.mark == StreamBoundary::Start => {
                assert!(
                    self.stream.is_none(),
                    "a run starts while another is running"
                );
                self.stream = Some((event.run, String::new()));
            }
            Payload::Stream(event) => {
                let (running, text) = self.stream.as_mut().expect("a run is running");
                assert_eq!(*running, event.run);
                match event.mark {
                    StreamBoundary::Reset => text.clear(),
                    StreamBoundary::Stop => self.stream = None,
                    _ => {}
                }
            }
            Payload::Delta(delta) => self.append(delta.offset, &delta.text),
            other => panic!("only these are published: {other:?}"),
        }
    }

    /// Reads the frame of protocol 2 as its clients do.
    fn apply_short_frame(&mut self, envelope: &Envelope) {
        let frame = envelope.frame(Protocol::V2).expect("clients get it");
        let frame: Value = serde_json::from_str(frame).expect("a frame is JSON");
        match frame["type"].as_str() {
            Some("Start") => {
                let handle = frame["h"].as_i64().expect("a start has a handle");
                self.short_stream = Some((handle, String::new()));
            }
            Some("Reset") => self.replace_text(""),
            Some("Stop") => self.short_stream = None,
            _ if frame.get("d").is_some() => {
                let (handle, text) = self.short_stream.as_mut().expect("a run is running");
                assert_eq!(frame["h"], *handle);
                assert_eq!(frame["o"], utf16_len(text), "a gap in the text");
                text.push_str(frame["d"].as_str().expect("a text"));
            }
            _ => {}
        }
    }

    fn replace_text(&mut self, text: &str) {
        let (_, shown) = self.short_stream.as_mut().expect("a run is running");
        *shown = text.to_owned();
    }

    fn append(&mut self, offset: usize, delta: &str) {
        let (_, text) = self.stream.as_mut().expect("a run is running");
        assert_eq!(offset, utf16_len(text), "a gap in the text");
        text.push_str(delta);
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

    fn read_rev(&mut self, server: &ServerState) {
        self.start.rev = server.rev;
        self.client.timeline = (1..=server.rev).collect();
    }

    fn read_running(&mut self, server: &ServerState) {
        self.start.running = server.running.map(|run| (run, 0));
    }

    fn read_live_text(&mut self, server: &ServerState) {
        self.outbox.push_barrier(HERE);
        let Some((run, length)) = &mut self.start.running else {
            return;
        };
        let live = server.live.as_ref().filter(|it| it.0 == *run);
        let text = live.map(|it| it.1.clone()).unwrap_or_default();
        *length = utf16_len(&text);
        self.client.short_stream = Some((stream_handle(HERE), text.clone()));
        self.client.stream = Some((*run, text));
    }

    fn answer(&mut self, server: &ServerState) {
        let mut buffered = std::mem::take(&mut self.buffered);
        self.filter = Some(SubscriptionFilter::new(self.start, &mut buffered));
        for envelope in buffered {
            self.filter_and_apply(&envelope, server);
        }
    }

    /// Handles what is in the outbox, as the socket's task does.
    fn drain(&mut self, server: &ServerState) {
        while let Some(next) = self.outbox.try_next() {
            match (next, &self.filter) {
                (NextItem::Envelope(it), None) => self.buffered.push(it),
                (NextItem::Envelope(it), Some(_)) => self.filter_and_apply(&it, server),
                (NextItem::Barrier(_), _) => self.answer(server),
                (other, _) => panic!("the outbox never overflows: {other:?}"),
            }
        }
    }

    fn filter_and_apply(&mut self, envelope: &Envelope, server: &ServerState) {
        let filter = self.filter.as_mut().unwrap();
        match filter.decide(&envelope.payload) {
            FilterDecision::Drop => {}
            FilterDecision::Forward => self.client.apply(envelope),
            FilterDecision::ForwardRest(rest) => self.client.apply(&Envelope::delta(rest)),
            FilterDecision::Repair { run, end } => {
                let live = server.live.as_ref().filter(|it| it.0 == run);
                let text = live.map(|it| it.1.as_str());
                if filter.repair(run, end, text) {
                    let (_, shown) = self.client.stream.as_mut().expect("a run is running");
                    *shown = text.unwrap().to_owned();
                    self.client.replace_text(text.unwrap());
                }
            }
            FilterDecision::Resync => panic!("no durable event was missing"),
        }
    }
}

/// When the late client starts to listen, and reads the `rev`, the running run and the live text: the
/// share of the actions before each of these, in thousandths, in ascending order.
type Moments = [usize; 4];

/// Executes the actions of the server, and those of the late client between them. `drains`: whether
/// the socket's task runs after an action; `losses`: whether a delta is lost on its way to the late
/// client.
fn run_scenario(
    steps: &[TimelineStep],
    moments: Moments,
    end: usize,
    drains: &[bool],
    losses: &[bool],
) -> [Client; 2] {
    let actions = server_actions(steps);
    let at = |fraction: usize| fraction * actions.len() / 1000;
    let [listen, rev, running, live] = moments.map(at);
    let rest = &actions[at(end).max(live).min(actions.len() - 1)..];
    let n_until_quiet = rest
        .iter()
        .position(|it| matches!(it, ServerAction::Quiet))
        .unwrap();
    let n_actions = actions.len() - rest.len() + n_until_quiet + 1;

    let mut server = ServerState::default();
    let mut early = Client::default();
    let mut late = None;
    for (n, action) in actions[..n_actions].iter().enumerate() {
        if n == listen {
            late = Some(LateSubscriber::new());
        }
        if let Some(late) = &mut late {
            if n == rev {
                late.read_rev(&server);
            }
            if n == running {
                late.read_running(&server);
            }
            if n == live {
                late.read_live_text(&server);
            }
        }
        if let Some(envelope) = server.apply(action) {
            early.apply(&envelope);
            let is_lost =
                matches!(action, ServerAction::Say(_)) && losses.get(n).copied().unwrap_or(false);
            if let Some(late) = &late
                && !is_lost
            {
                late.outbox.push(&envelope);
            }
        }
        if let Some(late) = &mut late
            && drains.get(n).copied().unwrap_or(true)
        {
            late.drain(&server);
        }
    }
    let mut late = late.expect("it started to listen");
    late.drain(&server);
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
    fn a_late_client_has_the_same_state_as_an_early_one(
        steps in proptest::collection::vec(timeline_step(), 1..5),
        moments in moments(),
        end in 0..1000usize,
        drains in random_bools(),
    ) {
        let [early, late] = run_scenario(&steps, moments, end, &drains, &[]);

        prop_assert_eq!(early, late);
    }

    #[test]
    fn a_client_of_protocol_2_reads_the_text_of_protocol_1(
        steps in proptest::collection::vec(timeline_step(), 1..5),
        moments in moments(),
        end in 0..1000usize,
        drains in random_bools(),
        losses in random_bools(),
    ) {
        for client in run_scenario(&steps, moments, end, &drains, &losses) {
            let text = |stream: Option<String>| stream.unwrap_or_default();
            prop_assert_eq!(
                text(client.short_stream.map(|it| it.1)),
                text(client.stream.map(|it| it.1))
            );
        }
    }

    #[test]
    fn lost_text_is_repaired(
        steps in proptest::collection::vec(timeline_step(), 1..5),
        moments in moments(),
        drains in random_bools(),
        losses in random_bools(),
    ) {
        let [early, late] = run_scenario(&steps, moments, 999, &drains, &losses);

        prop_assert_eq!(early, late);
    }
}
