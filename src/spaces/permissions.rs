//! Decides which actions a user may perform in a space, by role, admin rights and observer status.
//! No I/O.

use crate::spaces::membership;
use crate::spaces::membership::{MembershipKind, MembershipRole, MembershipStatus, Participation};

/// An action in a space that requires a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read the space and everything in it.
    Read,
    /// Post messages and send typing indicators.
    Post,
    /// Edit and delete one's own messages and switch their swipes.
    ChangeOwnMessage,
    /// Switch the swipes of any message, regardless of its author.
    SwitchSwipes,
    /// Generate, regenerate, continue, stop, retry, branch, and skip turns of characters.
    Generate,
    /// Pause, resume, edit the queue, cancel a run, create or rename a conversation, request
    /// copilot candidates, import, export, preview the prompt.
    ManageConversation,
    /// Delete messages of others; mute, reorder, invite and remove members; skip turns of people.
    Moderate,
    /// Change settings, roles, the characters of the roster and lorebook links.
    Configure,
    /// Delete a conversation.
    DeleteConversation,
    /// Edit text that an AI or another person wrote, add a new version in place, and read replaced
    /// texts.
    EditAnyMessage,
    /// Archive, transfer or delete the space.
    AdministerSpace,
}

/// Which turns a person may skip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipRight {
    /// Only that of the person.
    OwnTurn,
    /// Also those of characters.
    Characters,
    /// Also those of other people.
    Everyone,
}

/// Returns the permission required to invite someone with this role; `None` if it cannot be given
/// by an invitation.
pub fn inviting_as(role: MembershipRole) -> Option<Action> {
    match role {
        MembershipRole::Guest | MembershipRole::Member => Some(Action::Moderate),
        MembershipRole::Moderator => Some(Action::Configure),
        MembershipRole::Owner => None,
    }
}

/// A user's access to a space that they may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The role of their membership, if they have one.
    role: Option<MembershipRole>,
    is_admin: bool,
    is_observer: bool,
}

impl Access {
    /// Returns the access of a user with this membership, if any. `None`: the user is not a member,
    /// and the API treats the space as missing.
    pub fn for_member(membership: Option<&membership::Model>, is_admin: bool) -> Option<Self> {
        let membership = membership
            .filter(|it| it.status == MembershipStatus::Active && it.kind == MembershipKind::Human);
        if membership.is_none() && !is_admin {
            return None;
        }
        Some(Self {
            role: membership.map(|it| it.role),
            is_admin,
            is_observer: membership.is_some_and(|it| it.participation == Participation::Observer),
        })
    }

    /// Returns whether this access permits the action.
    pub fn can(self, action: Action) -> bool {
        match action {
            Action::Read => true,
            // An admin without a membership has no author to post as; observers may not post.
            Action::Post | Action::ChangeOwnMessage => self.role.is_some() && !self.is_observer,
            Action::SwitchSwipes | Action::Generate | Action::ManageConversation => {
                self.can_manage() || self.can_participate()
            }
            Action::Moderate
            | Action::Configure
            | Action::DeleteConversation
            | Action::EditAnyMessage => self.can_manage(),
            Action::AdministerSpace => self.is_admin || self.role == Some(MembershipRole::Owner),
        }
    }

    /// Returns which turns the user may skip.
    pub fn skip_right(self) -> SkipRight {
        match (self.can(Action::Moderate), self.can(Action::Generate)) {
            (true, _) => SkipRight::Everyone,
            (false, true) => SkipRight::Characters,
            (false, false) => SkipRight::OwnTurn,
        }
    }

    /// Returns the value of `my_role`.
    pub fn code(self) -> &'static str {
        match self.role {
            Some(MembershipRole::Owner) => "owner",
            Some(MembershipRole::Moderator) => "moderator",
            Some(MembershipRole::Member) => "member",
            Some(MembershipRole::Guest) => "guest",
            None => "admin",
        }
    }

    fn can_manage(self) -> bool {
        self.is_admin
            || matches!(
                self.role,
                Some(MembershipRole::Owner | MembershipRole::Moderator)
            )
    }

    fn can_participate(self) -> bool {
        self.role == Some(MembershipRole::Member) && !self.is_observer
    }
}

#[cfg(test)]
mod tests {
    use super::{Access, Action};
    use crate::spaces::membership::MembershipRole;

    const GUEST: Access = with_role(MembershipRole::Guest);
    const MEMBER: Access = with_role(MembershipRole::Member);
    const MODERATOR: Access = with_role(MembershipRole::Moderator);
    const OWNER: Access = with_role(MembershipRole::Owner);
    const ADMIN: Access = Access {
        role: None,
        is_admin: true,
        is_observer: false,
    };

    const fn with_role(role: MembershipRole) -> Access {
        Access {
            role: Some(role),
            is_admin: false,
            is_observer: false,
        }
    }

    fn row(action: Action) -> [bool; 5] {
        [GUEST, MEMBER, MODERATOR, OWNER, ADMIN].map(|it| it.can(action))
    }

    #[test]
    fn every_member_can_read() {
        assert_eq!(row(Action::Read), [true; 5]);
    }

    #[test]
    fn every_member_can_post_and_change_own_messages() {
        assert_eq!(row(Action::Post), [true, true, true, true, false]);
        assert_eq!(
            row(Action::ChangeOwnMessage),
            [true, true, true, true, false]
        );
    }

    #[test]
    fn members_can_generate() {
        for action in [
            Action::SwitchSwipes,
            Action::Generate,
            Action::ManageConversation,
        ] {
            assert_eq!(row(action), [false, true, true, true, true], "{action:?}");
        }
    }

    #[test]
    fn moderators_can_manage() {
        for action in [
            Action::Moderate,
            Action::Configure,
            Action::DeleteConversation,
            Action::EditAnyMessage,
        ] {
            assert_eq!(row(action), [false, false, true, true, true], "{action:?}");
        }
    }

    #[test]
    fn only_the_owner_and_admins_can_administer_the_space() {
        assert_eq!(
            row(Action::AdministerSpace),
            [false, false, false, true, true]
        );
    }

    #[test]
    fn an_observer_only_reads_but_a_managing_observer_still_manages() {
        let observer = |role| Access {
            is_observer: true,
            ..with_role(role)
        };

        for action in [
            Action::Post,
            Action::ChangeOwnMessage,
            Action::Generate,
            Action::ManageConversation,
        ] {
            assert!(!observer(MembershipRole::Member).can(action), "{action:?}");
            assert!(!observer(MembershipRole::Guest).can(action), "{action:?}");
        }
        assert!(observer(MembershipRole::Member).can(Action::Read));
        assert!(!observer(MembershipRole::Owner).can(Action::Post));
        assert!(observer(MembershipRole::Owner).can(Action::Configure));
    }

    #[test]
    fn an_admin_with_a_membership_has_both_rights() {
        let both = Access {
            is_admin: true,
            ..MEMBER
        };

        assert!(both.can(Action::Post) && both.can(Action::AdministerSpace));
        assert_eq!(both.code(), "member");
        assert_eq!(ADMIN.code(), "admin");
    }

    #[test]
    fn a_non_member_has_no_access() {
        assert_eq!(Access::for_member(None, false), None);
        assert_eq!(Access::for_member(None, true), Some(ADMIN));
    }
}
