//! Any life of a conversation, met by a late client at any moment: it ends up knowing what a
//! client knows that was there from the beginning.

use super::Filter;
use super::Start;
use super::Verdict;
use crate::ids::ConversationId;
use crate::realtime::event::Cargo;
use crate::realtime::event::Delta;
use crate::realtime::event::Envelope;
use crate::realtime::event::Mark;
use crate::realtime::event::utf16_len;
use crate::realtime::outbox::Next;
use crate::realtime::outbox::Outbox;
use crate::realtime::topic::Topic;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use uuid::Uuid;

const HERE: ConversationId = ConversationId(1);

/// What can happen, as a story to be cut into acts.
#[derive(Clone, Debug)]
enum Scene {
    Post,
    /// Each text is a piece; an empty one is the stream beginning anew, a lone dot a post between.
    Run {
        pieces: Vec<String>,
        succeeds: bool,
    },
}

/// One thing that happens at once. Between any two acts the late client may take its next step.
#[derive(Clone, Debug)]
enum Act {
    /// A commit with the next durable event, whose `rev` stands for a message.
    Commit(i64),
    /// The same, and a run runs from now on, or none does.
    CommitRunning(i64, Option<Uuid>),
    /// A durable event is published.
    TellDurable(i64),
    Tell(Uuid, Mark),
    Open(Uuid),
    Close,
    Say(String),
    Restart,
    /// Nothing is under way: all that was committed was told.
    Quiet,
}

fn acts(scenes: &[Scene]) -> Vec<Act> {
    let mut acts = vec![Act::Quiet];
    let mut rev = 0;
    for (n, scene) in scenes.iter().enumerate() {
        match scene {
            Scene::Post => post(&mut acts, &mut rev),
            Scene::Run { pieces, succeeds } => {
                let run = Uuid::from_u128(n as u128 + 1);
                live(&mut acts, &mut rev, run, pieces, *succeeds);
            }
        }
        acts.push(Act::Quiet);
    }
    acts
}

fn post(acts: &mut Vec<Act>, rev: &mut i64) {
    *rev += 1;
    acts.extend([Act::Commit(*rev), Act::TellDurable(*rev)]);
}

fn live(acts: &mut Vec<Act>, rev: &mut i64, run: Uuid, pieces: &[String], succeeds: bool) {
    *rev += 1;
    acts.push(Act::CommitRunning(*rev, Some(run)));
    // The order of these two is the engine's own affair.
    match succeeds {
        true => acts.extend([Act::TellDurable(*rev), Act::Open(run)]),
        false => acts.extend([Act::Open(run), Act::TellDurable(*rev)]),
    }
    acts.push(Act::Tell(run, Mark::Start));
    for piece in pieces {
        acts.push(Act::Quiet);
        match piece.as_str() {
            "" => acts.push(Act::Restart),
            "." => post(acts, rev),
            _ => acts.push(Act::Say(piece.clone())),
        }
    }
    acts.push(Act::Close);
    *rev += 2;
    acts.extend([
        Act::CommitRunning(*rev, None),
        Act::TellDurable(*rev - 1),
        Act::Tell(run, Mark::Complete),
        Act::TellDurable(*rev),
        Act::Tell(run, Mark::Stop),
    ]);
}

/// The server: its database, its live text.
#[derive(Default)]
struct World {
    rev: i64,
    running: Option<Uuid>,
    live: Option<(Uuid, String)>,
}

impl World {
    /// Lets it happen; what is published thereby.
    fn act(&mut self, act: &Act) -> Option<Arc<Envelope>> {
        let cargo = match act {
            Act::Commit(rev) => {
                self.rev = *rev;
                return None;
            }
            Act::CommitRunning(rev, run) => {
                self.rev = *rev;
                self.running = *run;
                return None;
            }
            Act::Open(run) => {
                self.live = Some((*run, String::new()));
                return None;
            }
            Act::Close => {
                self.live = None;
                return None;
            }
            Act::Quiet => return None,
            Act::TellDurable(rev) => Cargo::Frame {
                json: rev.to_string().into(),
                rev: Some(*rev),
            },
            Act::Tell(run, mark) => Cargo::Stream {
                json: "".into(),
                run: *run,
                lease: 1,
                mark: *mark,
            },
            Act::Restart => {
                let (run, text) = self.live.as_mut().unwrap();
                text.clear();
                Cargo::Stream {
                    json: "".into(),
                    run: *run,
                    lease: 1,
                    mark: Mark::Reset,
                }
            }
            Act::Say(piece) => {
                let (run, text) = self.live.as_mut().unwrap();
                let delta = Delta::new(HERE, *run, utf16_len(text), piece.clone());
                text.push_str(piece);
                Cargo::Delta(delta)
            }
        };
        let topic = Topic::Conversation(HERE);
        Some(Arc::new(Envelope { topic, cargo }))
    }
}

/// What a client knows. It panics where a browser would have to ask again.
#[derive(Clone, Debug, Default, PartialEq)]
struct Client {
    /// What each durable event told, in short: its number.
    timeline: BTreeSet<i64>,
    stream: Option<(Uuid, String)>,
}

impl Client {
    fn hear(&mut self, cargo: &Cargo) {
        match cargo {
            Cargo::Frame { rev: Some(rev), .. } => {
                assert!(self.timeline.insert(*rev), "told twice");
            }
            Cargo::Stream {
                run,
                mark: Mark::Start,
                ..
            } => {
                assert!(self.stream.is_none(), "a run begins while another writes");
                self.stream = Some((*run, String::new()));
            }
            Cargo::Stream { run, mark, .. } => {
                let (writes, text) = self.stream.as_mut().expect("a run writes");
                assert_eq!(writes, run);
                match mark {
                    Mark::Reset => text.clear(),
                    Mark::Stop => self.stream = None,
                    _ => {}
                }
            }
            Cargo::Delta(delta) => self.read(delta.offset, &delta.text),
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
struct Latecomer {
    outbox: Arc<Outbox>,
    held: Vec<Arc<Envelope>>,
    start: Start,
    filter: Option<Filter>,
    client: Client,
}

impl Latecomer {
    fn listen() -> Self {
        Self {
            outbox: Outbox::new(),
            held: Vec::new(),
            start: Start::default(),
            filter: None,
            client: Client::default(),
        }
    }

    fn read_rev(&mut self, world: &World) {
        self.start.rev = world.rev;
        self.client.timeline = (1..=world.rev).collect();
    }

    fn read_running(&mut self, world: &World) {
        self.start.running = world.running.map(|run| (run, 0));
    }

    fn read_live_text(&mut self, world: &World) {
        self.outbox.mark(HERE);
        let Some((run, length)) = &mut self.start.running else {
            return;
        };
        let live = world.live.as_ref().filter(|it| it.0 == *run);
        let text = live.map(|it| it.1.clone()).unwrap_or_default();
        *length = utf16_len(&text);
        self.client.stream = Some((*run, text));
    }

    fn answer(&mut self, world: &World) {
        let mut held = std::mem::take(&mut self.held);
        self.filter = Some(Filter::begin(self.start, &mut held));
        for envelope in held {
            self.let_through(&envelope, world);
        }
    }

    /// The socket's task looks into its outbox.
    fn take(&mut self, world: &World) {
        while let Some(next) = self.outbox.try_next() {
            match (next, &self.filter) {
                (Next::Envelope(it), None) => self.held.push(it),
                (Next::Envelope(it), Some(_)) => self.let_through(&it, world),
                (Next::Mark(_), _) => self.answer(world),
                (other, _) => panic!("so much never waits: {other:?}"),
            }
        }
    }

    fn let_through(&mut self, envelope: &Envelope, world: &World) {
        let filter = self.filter.as_mut().unwrap();
        match filter.judge(&envelope.cargo) {
            Verdict::Drop => {}
            Verdict::Forward => self.client.hear(&envelope.cargo),
            Verdict::Rest(json) => {
                let frame: serde_json::Value = serde_json::from_str(&json).unwrap();
                let offset = frame["offset"].as_u64().unwrap() as usize;
                self.client.read(offset, frame["delta"].as_str().unwrap());
            }
            Verdict::Mend { run, end } => {
                let live = world.live.as_ref().filter(|it| it.0 == run);
                let text = live.map(|it| it.1.as_str());
                if filter.mend(run, end, text) {
                    let (_, shown) = self.client.stream.as_mut().expect("a run writes");
                    *shown = text.unwrap().to_owned();
                }
            }
            Verdict::Resync => panic!("no durable event was missing"),
        }
    }
}

/// When the late client takes its steps, as acts that have happened by then; rising.
type Moments = [usize; 4];

/// Plays the story. `takes`: whether the socket's task runs after an act; `misses`: whether a
/// piece of text gets lost on its way to the late client.
fn play(
    scenes: &[Scene],
    moments: Moments,
    end: usize,
    takes: &[bool],
    misses: &[bool],
) -> [Client; 2] {
    let acts = acts(scenes);
    let at = |fraction: usize| fraction * acts.len() / 1000;
    let [listen, rev, running, live] = moments.map(at);
    let rest = &acts[at(end).max(live).min(acts.len() - 1)..];
    let quiet = rest.iter().position(|it| matches!(it, Act::Quiet)).unwrap();
    let n_acts = acts.len() - rest.len() + quiet + 1;

    let mut world = World::default();
    let mut veteran = Client::default();
    let mut late = None;
    for (n, act) in acts[..n_acts].iter().enumerate() {
        if n == listen {
            late = Some(Latecomer::listen());
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
        if let Some(envelope) = world.act(act) {
            veteran.hear(&envelope.cargo);
            let missed = matches!(act, Act::Say(_)) && misses.get(n).copied().unwrap_or(false);
            if let Some(late) = &late
                && !missed
            {
                late.outbox.push(&envelope);
            }
        }
        if let Some(late) = &mut late
            && takes.get(n).copied().unwrap_or(true)
        {
            late.take(&world);
        }
    }
    let mut late = late.expect("it came");
    late.take(&world);
    [veteran, late.client]
}

fn scene() -> impl Strategy<Value = Scene> {
    let piece = prop_oneof![
        4 => "[a-zé😀]{1,3}",
        1 => Just(String::new()),
        1 => Just(".".to_owned()),
    ];
    let run = (proptest::collection::vec(piece, 0..8), any::<bool>());
    prop_oneof![
        1 => Just(Scene::Post),
        3 => run.prop_map(|(pieces, succeeds)| Scene::Run { pieces, succeeds }),
    ]
}

fn moments() -> impl Strategy<Value = Moments> {
    any::<[u16; 4]>().prop_map(|it| {
        let mut moments = it.map(|it| usize::from(it) % 1000);
        moments.sort_unstable();
        moments
    })
}

fn coins() -> impl Strategy<Value = Vec<bool>> {
    proptest::collection::vec(any::<bool>(), 0..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_late_client_knows_what_an_early_one_knows(
        scenes in proptest::collection::vec(scene(), 1..5),
        moments in moments(),
        end in 0..1000usize,
        takes in coins(),
    ) {
        let [veteran, late] = play(&scenes, moments, end, &takes, &[]);

        prop_assert_eq!(veteran, late);
    }

    #[test]
    fn text_that_gets_lost_on_the_way_is_mended(
        scenes in proptest::collection::vec(scene(), 1..5),
        moments in moments(),
        takes in coins(),
        misses in coins(),
    ) {
        let [veteran, late] = play(&scenes, moments, 999, &takes, &misses);

        prop_assert_eq!(veteran, late);
    }
}
