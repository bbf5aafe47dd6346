//! Who may do what: the table of rights, as functions over a standing.

use crate::spaces::membership;
use crate::spaces::membership::MembershipKind;
use crate::spaces::membership::MembershipRole;
use crate::spaces::membership::MembershipStatus;
use crate::spaces::membership::Participation;

/// What somebody wants to do in a space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// See the space and all in it.
    See,
    /// Post, and be seen typing.
    Post,
    /// Edit and delete one's own message, switch its swipes.
    ChangeOwnMessage,
    /// Switch the swipes of the tail, whoever wrote it.
    SwitchSwipes,
    /// Generate, regenerate, stop, retry, skip, branch.
    Generate,
    /// Pause, resume, edit the queue, cancel a run, make or rename a conversation, ask for copilot
    /// candidates, import, export, preview the prompt.
    Direct,
    /// Delete another's message, mute, reorder, invite and remove members.
    Moderate,
    /// Change the settings, roles, the roster of AI, links to lore.
    Configure,
    /// Delete a conversation.
    DeleteConversation,
    /// Edit what an AI wrote.
    EditAiText,
    /// Archive, hand over, delete the space.
    Own,
}

/// What it takes to let somebody in with this role. `None`: nobody comes in as that.
pub fn letting_in_as(role: MembershipRole) -> Option<Act> {
    match role {
        MembershipRole::Guest | MembershipRole::Member => Some(Act::Moderate),
        MembershipRole::Moderator => Some(Act::Configure),
        MembershipRole::Owner => None,
    }
}

/// How somebody stands in a space they may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The role of their seat, when they have one.
    role: Option<MembershipRole>,
    runs_the_server: bool,
    only_reads: bool,
}

impl Standing {
    /// The standing of a person with this seat, or none. `None`: an outsider, for whom the space
    /// does not exist.
    pub fn of(seat: Option<&membership::Model>, runs_the_server: bool) -> Option<Self> {
        let seat = seat
            .filter(|it| it.status == MembershipStatus::Active && it.kind == MembershipKind::Human);
        if seat.is_none() && !runs_the_server {
            return None;
        }
        Some(Self {
            role: seat.map(|it| it.role),
            runs_the_server,
            only_reads: seat.is_some_and(|it| it.participation == Participation::Observer),
        })
    }

    /// Whether somebody who stands so may do this.
    pub fn may(self, act: Act) -> bool {
        match act {
            Act::See => true,
            // Words need a mouth: an admin without a seat has none here, an observer keeps silent.
            Act::Post | Act::ChangeOwnMessage => self.role.is_some() && !self.only_reads,
            Act::SwitchSwipes | Act::Generate | Act::Direct => self.manages() || self.plays(),
            Act::Moderate | Act::Configure | Act::DeleteConversation | Act::EditAiText => {
                self.manages()
            }
            Act::Own => self.runs_the_server || self.role == Some(MembershipRole::Owner),
        }
    }

    /// The word in `my_role`.
    pub fn word(self) -> &'static str {
        match self.role {
            Some(MembershipRole::Owner) => "owner",
            Some(MembershipRole::Moderator) => "moderator",
            Some(MembershipRole::Member) => "member",
            Some(MembershipRole::Guest) => "guest",
            None => "admin",
        }
    }

    fn manages(self) -> bool {
        self.runs_the_server
            || matches!(
                self.role,
                Some(MembershipRole::Owner | MembershipRole::Moderator)
            )
    }

    fn plays(self) -> bool {
        self.role == Some(MembershipRole::Member) && !self.only_reads
    }
}

#[cfg(test)]
mod tests {
    use super::Act;
    use super::Standing;
    use crate::spaces::membership::MembershipRole;

    const GUEST: Standing = seated(MembershipRole::Guest);
    const MEMBER: Standing = seated(MembershipRole::Member);
    const MODERATOR: Standing = seated(MembershipRole::Moderator);
    const OWNER: Standing = seated(MembershipRole::Owner);
    const ADMIN: Standing = Standing {
        role: None,
        runs_the_server: true,
        only_reads: false,
    };

    const fn seated(role: MembershipRole) -> Standing {
        Standing {
            role: Some(role),
            runs_the_server: false,
            only_reads: false,
        }
    }

    fn row(act: Act) -> [bool; 5] {
        [GUEST, MEMBER, MODERATOR, OWNER, ADMIN].map(|it| it.may(act))
    }

    #[test]
    fn everybody_inside_sees() {
        assert_eq!(row(Act::See), [true; 5]);
    }

    #[test]
    fn everybody_with_a_seat_posts_and_changes_their_own() {
        assert_eq!(row(Act::Post), [true, true, true, true, false]);
        assert_eq!(row(Act::ChangeOwnMessage), [true, true, true, true, false]);
    }

    #[test]
    fn members_play() {
        for act in [Act::SwitchSwipes, Act::Generate, Act::Direct] {
            assert_eq!(row(act), [false, true, true, true, true], "{act:?}");
        }
    }

    #[test]
    fn moderators_manage() {
        for act in [
            Act::Moderate,
            Act::Configure,
            Act::DeleteConversation,
            Act::EditAiText,
        ] {
            assert_eq!(row(act), [false, false, true, true, true], "{act:?}");
        }
    }

    #[test]
    fn only_the_owner_and_an_admin_own() {
        assert_eq!(row(Act::Own), [false, false, false, true, true]);
    }

    #[test]
    fn an_observer_only_reads_but_a_managing_one_still_manages() {
        let silent = |role| Standing {
            only_reads: true,
            ..seated(role)
        };

        for act in [Act::Post, Act::ChangeOwnMessage, Act::Generate, Act::Direct] {
            assert!(!silent(MembershipRole::Member).may(act), "{act:?}");
            assert!(!silent(MembershipRole::Guest).may(act), "{act:?}");
        }
        assert!(silent(MembershipRole::Member).may(Act::See));
        assert!(!silent(MembershipRole::Owner).may(Act::Post));
        assert!(silent(MembershipRole::Owner).may(Act::Configure));
    }

    #[test]
    fn an_admin_with_a_seat_has_both() {
        let both = Standing {
            runs_the_server: true,
            ..MEMBER
        };

        assert!(both.may(Act::Post) && both.may(Act::Own));
        assert_eq!(both.word(), "member");
        assert_eq!(ADMIN.word(), "admin");
    }

    #[test]
    fn an_outsider_has_no_standing() {
        assert_eq!(Standing::of(None, false), None);
        assert_eq!(Standing::of(None, true), Some(ADMIN));
    }
}
