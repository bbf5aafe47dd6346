//! What each step changes in the model. Which steps are possible is in `possible_steps.rs`.

use stateright::{Model, Property};

use crate::nodes::{Held, Life, Node, Stage};
use crate::transactions::SpaceRules;
use crate::world::{Policy, Rows, Status};

/// A flaw of the protocol; a model has at most one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    None,
    /// An end compares only the id of the run, neither state nor lease.
    FinishById,
    /// An end compares the id and the state of the run, not the lease.
    FinishByState,
    /// The lease is compared in a separate transaction before the one that writes.
    LeaseSeenBefore,
    /// The newest message is read before the run is claimed.
    CutoffFirst,
    /// The dispatcher reads a queued run, then claims it by its id only.
    ClaimById,
    /// A heartbeat renews every run whose row names the node, even one it does not execute.
    BeatByName,
    /// The reaper queues the same row again.
    NaiveRequeue,
    /// The reaper fails the run that it has read without comparing its state and lease.
    ReapById,
    /// The follow-up is planned after the commit.
    FollowUpApart,
    /// A message is stored in one transaction and planned in the next.
    PlanApart,
    /// A stop flags the running run and is acknowledged.
    StopOnlyAsks,
    /// The step after a text does not check whether a user stopped meanwhile.
    DeafToStop,
    /// The turns of auto mode are not counted.
    NoBudget,
}

/// The number of user actions and faults of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FaultBudget {
    pub posts: u8,
    pub crashes: u8,
    pub sleeps: u8,
    pub closes: u8,
    pub stops: u8,
    pub resumes: u8,
    /// Failures of a model.
    pub failures: u8,
    /// Transactions whose response is lost: an end is retried, a claim is unknown to its node.
    pub unconfirmed: u8,
}

#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    pub n_nodes: usize,
    pub n_slots: u8,
    pub auto_budget: u8,
    pub policy: Policy,
    pub flaw: Flaw,
    pub trouble: FaultBudget,
}

/// The rows, the nodes, and the remaining user actions and faults.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub rows: Rows,
    /// Sorted by state, because nodes with the same state are interchangeable.
    pub nodes: Vec<Node>,
    pub left: FaultBudget,
}

/// One step. A number is the node that executes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Post(usize),
    Plan(usize),
    Stop,
    StopKeeping,
    Resume,
    Look(usize),
    Claim(usize),
    ClaimUnconfirmed(usize),
    Check(usize, Held),
    Commit(usize, Held),
    CommitUnconfirmed(usize, Held),
    Follow(usize, Held),
    Fail(usize, Held),
    HandBack(usize, Held),
    HandBackUnconfirmed(usize, Held),
    Beat(usize),
    FallSilent(u8),
    Suspect(usize),
    Reap(usize),
    Adrift(usize),
    Crash(usize),
    Sleep(usize),
    Wake(usize),
    Close(usize),
}

impl Schedule {
    fn rules(&self) -> SpaceRules {
        SpaceRules {
            n_slots: self.n_slots,
            auto_budget: (self.flaw != Flaw::NoBudget).then_some(self.auto_budget),
            policy: self.policy,
        }
    }

    /// Returns the world after a step, or `None` if it would change nothing.
    pub fn after(&self, before: &World, step: Step) -> Option<World> {
        let mut world = before.clone();
        match step {
            Step::Post(n) => self.post(&mut world, n),
            Step::Stop => {
                world.rows.stop(self.flaw == Flaw::StopOnlyAsks);
                world.left.stops -= 1;
            }
            Step::StopKeeping => {
                world.rows.stop_keeping();
                world.left.stops -= 1;
            }
            Step::Resume => {
                world.rows.resume();
                world.left.resumes -= 1;
            }
            Step::FallSilent(run) => world.rows.run_mut(run).is_silent = true,
            Step::Wake(n) => world.nodes[n].life = Life::Awake,
            Step::Sleep(n) => {
                world.nodes[n].life = Life::Asleep;
                world.left.sleeps -= 1;
            }
            Step::Crash(n) => {
                world.nodes[n].die();
                world.left.crashes -= 1;
            }
            Step::Close(n) => {
                let node = &mut world.nodes[n];
                (node.is_closing, node.suspect, node.seen) = (true, None, None);
                world.left.closes -= 1;
            }
            of_a_node => self.work(&mut world, of_a_node),
        }
        for node in &mut world.nodes {
            // A closing node without turns exits.
            if node.is_closing && node.held.is_empty() && node.unplanned.is_none() {
                node.die();
            }
        }
        world.nodes.sort();
        (world != *before).then_some(world)
    }

    fn post(&self, world: &mut World, n: usize) {
        let seq = world.rows.append_post(&self.rules());
        world.left.posts -= 1;
        match self.flaw {
            Flaw::PlanApart => world.nodes[n].unplanned = Some(seq),
            _ => world.rows.plan_post(seq),
        }
    }

    fn work(&self, world: &mut World, step: Step) {
        let World { rows, nodes, left } = world;
        match step {
            Step::Plan(n) => {
                let seq = nodes[n].unplanned.take().expect("a post is unplanned");
                rows.plan_post(seq);
            }
            Step::Look(n) => {
                let queued = rows.in_status(Status::Queued).expect("a run is queued");
                nodes[n].seen = Some((queued, rows.tail()));
            }
            Step::Claim(n) => self.claim(rows, &mut nodes[n]),
            Step::ClaimUnconfirmed(n) => {
                self.claim(rows, &mut nodes[n]);
                // It is not checked earlier: a node claims only if nothing is running.
                nodes[n].held.retain(|it| !rows.is_held(it.run, it.lease));
                left.unconfirmed -= 1;
            }
            Step::Check(n, held) => match rows.is_held(held.run, held.lease) {
                true => nodes[n].set_stage(held, Stage::Checked),
                false => nodes[n].release(held),
            },
            Step::Commit(n, held) => {
                let did = self.commit(rows, held);
                match did && self.flaw == Flaw::FollowUpApart {
                    true => nodes[n].set_stage(held, Stage::Followless),
                    false => nodes[n].release(held),
                }
            }
            Step::CommitUnconfirmed(_, held) => {
                self.commit(rows, held);
                left.unconfirmed -= 1;
            }
            Step::Follow(n, held) => {
                self.follow(rows, held);
                nodes[n].release(held);
            }
            Step::Fail(n, held) => {
                if self.may_write(rows, held) {
                    rows.fail(held.run, held.lease);
                }
                nodes[n].release(held);
                left.failures -= 1;
            }
            Step::HandBack(n, held) => {
                self.hand_back(rows, held);
                nodes[n].release(held);
            }
            Step::HandBackUnconfirmed(n, held) => {
                self.hand_back(rows, held);
                nodes[n].set_stage(held, Stage::GivingBack);
                left.unconfirmed -= 1;
            }
            Step::Beat(n) => beat(rows, &mut nodes[n]),
            Step::Suspect(n) => {
                let run = rows.in_status(Status::Running).expect("a run is running");
                nodes[n].suspect = Some((run, rows.run(run).lease));
            }
            Step::Reap(n) => self.reap(rows, &mut nodes[n]),
            Step::Adrift(_) => rows.close_round(),
            other => unreachable!("{other:?} is no step of a node"),
        }
    }

    fn claim(&self, rows: &mut Rows, node: &mut Node) {
        let seen = node.seen.take();
        let (id, cutoff) = match (seen, self.flaw) {
            (Some((id, _)), Flaw::ClaimById) => (Some(id), None),
            (Some((id, tail)), _) => {
                let queued = rows.in_status(Status::Queued);
                (queued.filter(|it| *it == id), Some(tail))
            }
            (None, _) => (rows.in_status(Status::Queued), None),
        };
        // Every model has the unique index of the running run.
        let Some(run) = id.filter(|_| rows.in_status(Status::Running).is_none()) else {
            return;
        };
        if rows.is_out_of_date(run) {
            return rows.skip(run, &self.rules());
        }
        let lease = rows.claim(run, cutoff);
        if self.flaw == Flaw::BeatByName {
            node.named = Some((run, lease));
        }
        let stage = Stage::Speaking;
        node.held.push(Held { run, lease, stage });
        node.held.sort();
    }

    /// Whether the condition of a statement that ends a run holds.
    fn may_write(&self, rows: &Rows, held: Held) -> bool {
        match self.flaw {
            Flaw::FinishById => true,
            Flaw::LeaseSeenBefore if held.stage == Stage::Checked => true,
            Flaw::FinishByState => rows.run(held.run).status == Status::Running,
            _ => rows.is_held(held.run, held.lease),
        }
    }

    fn commit(&self, rows: &mut Rows, held: Held) -> bool {
        let may = self.may_write(rows, held);
        if may {
            rows.finish(held.run, held.lease);
        }
        if may && self.flaw != Flaw::FollowUpApart {
            self.follow(rows, held);
        }
        may
    }

    fn follow(&self, rows: &mut Rows, held: Held) {
        let heeds = self.flaw != Flaw::DeafToStop;
        rows.follow(held.run, heeds, &self.rules());
    }

    fn hand_back(&self, rows: &mut Rows, held: Held) {
        if self.may_write(rows, held) {
            rows.hand_back(held.run, held.lease);
        }
    }

    fn reap(&self, rows: &mut Rows, node: &mut Node) {
        let (run, lease) = node.suspect.take().expect("a run is suspected");
        let is_silent = rows.is_held(run, lease) && rows.run(run).is_silent;
        match self.flaw {
            Flaw::ReapById => rows.abandon(run),
            Flaw::NaiveRequeue if is_silent => match rows.in_status(Status::Queued) {
                // The unique index of the queued run rejects the row; the reaper retries for ever.
                Some(_) => node.suspect = Some((run, lease)),
                None => rows.put_back(run),
            },
            _ if is_silent => rows.abandon(run),
            _ => {}
        }
    }
}

/// Renews the leases of the node, and drops turns whose lease is lost.
fn beat(rows: &mut Rows, node: &mut Node) {
    for it in &node.held {
        if rows.is_held(it.run, it.lease) {
            rows.run_mut(it.run).is_silent = false;
        }
    }
    node.held
        .retain(|it| it.stage != Stage::Speaking || rows.is_held(it.run, it.lease));
}

impl Model for Schedule {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            rows: Rows::default(),
            nodes: vec![Node::new(); self.n_nodes],
            left: self.trouble,
        }]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        self.steps_of_nodes(world, steps);
        self.steps_from_outside(world, steps);
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        self.after(world, step)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        crate::invariants::all(self)
    }

    /// Only a flawed model exceeds the boundary.
    fn within_boundary(&self, world: &World) -> bool {
        world.rows.texts.len() <= 8
    }
}
