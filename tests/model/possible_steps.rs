//! The possible next steps of the model: those of the nodes, actions of users, and faults, as often
//! as the bounds allow.

use crate::nodes::{Held, Life, Node, Stage};
use crate::steps::{Flaw, Schedule, Step, World};
use crate::world::Status;

impl Schedule {
    /// Whether the nodes that are awake have a possible step.
    pub fn can_move(&self, world: &World) -> bool {
        let mut steps = Vec::new();
        self.steps_of_nodes(world, &mut steps);
        steps.into_iter().any(|it| self.after(world, it).is_some())
    }

    pub fn steps_of_nodes(&self, world: &World, steps: &mut Vec<Step>) {
        let rows = &world.rows;
        let running = rows.in_status(Status::Running);
        let is_due = rows.in_status(Status::Queued).is_some() && running.is_none();
        let looks_first = matches!(self.flaw, Flaw::CutoffFirst | Flaw::ClaimById);
        let silent = running.filter(|it| rows.run(*it).is_silent);
        if let Some(run) = running
            && silent.is_none()
            && !self.is_alive(world, run)
        {
            steps.push(Step::FallSilent(run));
        }
        for (n, node) in awake(world) {
            if !node.is_closing {
                match node.seen {
                    Some(_) => steps.push(Step::Claim(n)),
                    None if is_due && looks_first => steps.push(Step::Look(n)),
                    None if is_due => steps.push(Step::Claim(n)),
                    None => {}
                }
                match node.suspect {
                    Some(_) => steps.push(Step::Reap(n)),
                    None if silent.is_some() => steps.push(Step::Suspect(n)),
                    None => {}
                }
                if rows.is_going_on() && running.is_none() && !is_due {
                    steps.push(Step::Adrift(n));
                }
            }
            if node.unplanned.is_some() {
                steps.push(Step::Plan(n));
            }
            for held in &node.held {
                self.steps_of_a_turn(n, node, *held, steps);
            }
            steps.push(Step::Beat(n));
        }
    }

    fn steps_of_a_turn(&self, n: usize, node: &Node, held: Held, steps: &mut Vec<Step>) {
        match held.stage {
            Stage::Speaking if self.flaw == Flaw::LeaseSeenBefore => {
                steps.push(Step::Check(n, held));
            }
            Stage::Speaking | Stage::Checked => steps.push(Step::Commit(n, held)),
            Stage::Followless => steps.push(Step::Follow(n, held)),
            Stage::GivingBack => {}
        }
        let gives_back = matches!(held.stage, Stage::Speaking | Stage::GivingBack);
        if node.is_closing && gives_back {
            steps.push(Step::HandBack(n, held));
        }
    }

    /// Actions of users, and faults.
    pub fn steps_from_outside(&self, world: &World, steps: &mut Vec<Step>) {
        let (rows, left) = (&world.rows, &world.left);
        let is_active = [Status::Queued, Status::Running]
            .iter()
            .any(|it| rows.in_status(*it).is_some());
        if left.stops > 0 && is_active {
            steps.push(Step::Stop);
            steps.push(Step::StopKeeping);
        }
        if left.resumes > 0 && !is_active && rows.round.is_some() && !rows.is_going_on() {
            steps.push(Step::Resume);
        }
        for (n, node) in world.nodes.iter().enumerate() {
            if node.life == Life::Asleep {
                steps.push(Step::Wake(n));
            }
        }
        for (n, node) in awake(world) {
            if left.posts > 0 && node.unplanned.is_none() {
                steps.push(Step::Post(n));
            }
            if left.sleeps > 0 {
                steps.push(Step::Sleep(n));
            }
            let goes_on =
                |(other, it): (usize, &Node)| other != n && it.life != Life::Dead && !it.is_closing;
            let somebody_stays = world.nodes.iter().enumerate().any(goes_on);
            if left.crashes > 0 && somebody_stays {
                steps.push(Step::Crash(n));
            }
            if left.closes > 0 && somebody_stays && !node.is_closing {
                steps.push(Step::Close(n));
            }
            let is_due = rows.in_status(Status::Queued).is_some()
                && rows.in_status(Status::Running).is_none();
            if left.unconfirmed > 0 && is_due && !node.is_closing {
                steps.push(Step::ClaimUnconfirmed(n));
            }
            for held in node.held.iter().copied() {
                if left.failures > 0 && held.stage == Stage::Speaking {
                    steps.push(Step::Fail(n, held));
                }
                if left.unconfirmed > 0 && held.stage == Stage::Speaking {
                    steps.push(Step::CommitUnconfirmed(n, held));
                }
                if left.unconfirmed > 0 && node.is_closing && held.stage != Stage::Followless {
                    steps.push(Step::HandBackUnconfirmed(n, held));
                }
            }
        }
    }

    /// A node that is awake sends a heartbeat for this run.
    fn is_alive(&self, world: &World, run: u8) -> bool {
        let lease = world.rows.run(run).lease;
        awake(world).any(|(_, node)| node.holds(run, lease) || node.named == Some((run, lease)))
    }
}

fn awake(world: &World) -> impl Iterator<Item = (usize, &Node)> {
    let all = world.nodes.iter().enumerate();
    all.filter(|(_, it)| it.is_awake())
}
