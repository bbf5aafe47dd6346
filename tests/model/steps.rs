//! What each step changes in the model. Which steps are possible is in `possible_steps.rs`.

use stateright::{Model, Property};

use crate::nodes::{Held, Life, Node, Stage};
use crate::transactions::SpaceRules;
use crate::world::{Policy, Rows, Status};

/// A wrong way to do it, one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    None,
    /// An end names the run alone, neither state nor lease.
    FinishById,
    /// An end names run and state, not the lease.
    FinishByState,
    /// The lease is compared in a transaction of its own, before the one that writes.
    LeaseSeenBefore,
    /// The newest message is read before the run is claimed.
    CutoffFirst,
    /// The dispatcher reads whether a run is queued, then claims it by its id.
    ClaimById,
    /// A heartbeat renews whatever the rows say is the node's, though it may not know of it.
    BeatByName,
    /// The reaper queues the very row again.
    NaiveRequeue,
    /// The reaper fails what it has seen, whatever has become of it.
    ReapById,
    /// What follows is planned after the commit.
    FollowUpApart,
    /// A message is stored in one transaction and planned in the next.
    PlanApart,
    /// A stop flags the running run and is acknowledged.
    StopOnlyAsks,
    /// The step after a text does not check whether a user stopped meanwhile.
    DeafToStop,
    /// No step counts the turns of auto mode.
    NoBudget,
}

/// How often something may come from outside.
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
    /// Transactions whose answer is lost: an end is tried again, a claim is not known of.
    pub unheard: u8,
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

/// The rows, the nodes, and what may still come from outside.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub rows: Rows,
    /// In order of what they hold: nodes that hold the same are the same.
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
    ClaimUnheard(usize),
    Check(usize, Held),
    Commit(usize, Held),
    CommitUnheard(usize, Held),
    Follow(usize, Held),
    Fail(usize, Held),
    HandBack(usize, Held),
    HandBackUnheard(usize, Held),
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
    fn room(&self) -> SpaceRules {
        SpaceRules {
            n_slots: self.n_slots,
            auto_budget: (self.flaw != Flaw::NoBudget).then_some(self.auto_budget),
            policy: self.policy,
        }
    }

    /// The world after a step; `None`: it would change nothing.
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
            // A closing node with nothing left in its hands is gone.
            if node.is_closing && node.held.is_empty() && node.unplanned.is_none() {
                node.die();
            }
        }
        world.nodes.sort();
        (world != *before).then_some(world)
    }

    fn post(&self, world: &mut World, n: usize) {
        let seq = world.rows.append_post(&self.room());
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
                let seq = nodes[n].unplanned.take().expect("something to plan");
                rows.plan_post(seq);
            }
            Step::Look(n) => {
                let queued = rows.in_status(Status::Queued).expect("something queued");
                nodes[n].seen = Some((queued, rows.tail()));
            }
            Step::Claim(n) => self.claim(rows, &mut nodes[n]),
            Step::ClaimUnheard(n) => {
                self.claim(rows, &mut nodes[n]);
                // It is not there before: a node claims where nothing runs.
                nodes[n].held.retain(|it| !rows.is_held(it.run, it.lease));
                left.unheard -= 1;
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
            Step::CommitUnheard(_, held) => {
                self.commit(rows, held);
                left.unheard -= 1;
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
            Step::HandBackUnheard(n, held) => {
                self.hand_back(rows, held);
                nodes[n].set_stage(held, Stage::GivingBack);
                left.unheard -= 1;
            }
            Step::Beat(n) => beat(rows, &mut nodes[n]),
            Step::Suspect(n) => {
                let run = rows.in_status(Status::Running).expect("a silent run");
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
        // The index of the one running run stands in every model.
        let Some(run) = id.filter(|_| rows.in_status(Status::Running).is_none()) else {
            return;
        };
        if rows.is_out_of_date(run) {
            return rows.skip(run, &self.room());
        }
        let lease = rows.claim(run, cutoff);
        if self.flaw == Flaw::BeatByName {
            node.named = Some((run, lease));
        }
        let stage = Stage::Speaking;
        node.held.push(Held { run, lease, stage });
        node.held.sort();
    }

    /// What a statement that ends a run compares.
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
        rows.follow(held.run, heeds, &self.room());
    }

    fn hand_back(&self, rows: &mut Rows, held: Held) {
        if self.may_write(rows, held) {
            rows.hand_back(held.run, held.lease);
        }
    }

    fn reap(&self, rows: &mut Rows, node: &mut Node) {
        let (run, lease) = node.suspect.take().expect("a suspect");
        let is_silent = rows.is_held(run, lease) && rows.run(run).is_silent;
        match self.flaw {
            Flaw::ReapById => rows.abandon(run),
            Flaw::NaiveRequeue if is_silent => match rows.in_status(Status::Queued) {
                // The index of the one queued run refuses; the reaper tries for ever.
                Some(_) => node.suspect = Some((run, lease)),
                None => rows.put_back(run),
            },
            _ if is_silent => rows.abandon(run),
            _ => {}
        }
    }
}

/// Renews what is the node's own, and lets go of what is not any more.
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

    /// Only a flawed model gets there.
    fn within_boundary(&self, world: &World) -> bool {
        world.rows.texts.len() <= 8
    }
}
