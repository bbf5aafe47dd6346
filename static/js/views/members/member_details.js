// The details below a member of the list: what the user can change of this membership.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { percent } from "../../base/numbers.js"
import { may } from "../../models/members/rights.js"
import { button, iconButton } from "../components/button.js"
import { openCardEditor } from "../characters/card_editor.js"
import { confirm } from "../components/dialog.js"
import { select } from "../components/form.js"
import { presetChoice } from "../presets/preset_choice.js"
import { memberMemory } from "./member_memory.js"
import { memberModel } from "./member_model.js"
import { authorNoteForm } from "../prompt/author_note_form.js"
import { openMyMembershipDialog } from "./my_membership_dialog.js"

const ROLES = ["guest", "member", "moderator"]

export default class MemberDetails {
  #parts
  #move

  // `move(member, step)` moves a character by one position.
  constructor(parts, { move }) {
    this.#parts = parts
    this.#move = move
  }

  // Actions

  // `role` is the role of the user, not of the member.
  build(member, role) {
    const children =
      member.kind === "character"
        ? this.#ofCharacter(member, role)
        : member.id === this.#parts.store.myMembership?.id
          ? this.#ofMyself(member)
          : this.#ofPerson(member, role)
    return el("div", { class: "member__details" }, children)
  }

  // Private

  #ofCharacter(member, role) {
    const name = member.display_name
    const isMuted = member.participation === "muted"
    const mute = isMuted ? t("member.unmute") : t("member.mute")
    return [
      this.#talkativeness(member),
      this.#preset(member, role),
      memberModel(this.#parts, member, (act) => this.#try(act)),
      this.#memory(member),
      this.#note(member),
      el(
        "div",
        { class: "member__buttons" },
        this.#iconButton("up", t("member.up", { name }), () => this.#move(member, -1)),
        this.#iconButton("down", t("member.down", { name }), () => this.#move(member, 1)),
        this.#participation(member, "muted", isMuted ? "sound" : "mute", mute),
        this.#participation(member, "observer", "eye", t("participation.observer")),
        member.character_id !== null &&
          this.#button("edit", t("card.edit"), () => openCardEditor(this.#parts, member.character_id)),
        this.#button("trash", t("member.remove"), () => this.#remove(member)),
      ),
    ]
  }

  #ofPerson(member, role) {
    return [
      this.#role(member),
      this.#memory(member),
      el(
        "div",
        { class: "member__buttons" },
        this.#away(member),
        this.#participation(member, "observer", "eye", t("participation.observer")),
        may(role, "hand_over") && this.#button("key", t("member.hand_over"), () => this.#handOver(member)),
        this.#button("trash", t("member.remove"), () => this.#remove(member)),
      ),
    ]
  }

  #ofMyself(member) {
    const isOwner = member.role === "owner"
    return [
      this.#memory(member),
      el(
        "div",
        { class: "member__buttons" },
        this.#button("edit", t("member.edit"), () => openMyMembershipDialog(this.#parts, member)),
        this.#away(member),
        !isOwner && this.#button("leave", t("member.leave"), () => this.#leave(member)),
      ),
      isOwner && el("p", { class: "field__hint" }, t("member.owner_stays")),
    ]
  }

  #talkativeness(member) {
    const id = `talk-${member.id}`
    // Without a value of its own, a character has the talkativeness of its card.
    const own = member.talkativeness
    const output = el(
      "output",
      { class: "field__value", for: id },
      own === null ? t("member.talkativeness_card") : percent(own),
    )
    const input = ({ currentTarget }) => {
      output.textContent = percent(Number(currentTarget.value))
      currentTarget.setAttribute("aria-valuetext", output.textContent)
    }
    const change = ({ currentTarget }) =>
      this.#try(() => this.#parts.members.setTalkativeness(member, Number(currentTarget.value)))
    const range = el("input", {
      class: "range",
      type: "range",
      id,
      "data-act": "talk",
      min: "0",
      max: "1",
      step: "0.05",
      value: String(own ?? 0.5),
      "aria-valuetext": output.textContent,
      on: { input, change },
    })
    return el(
      "div",
      { class: "field" },
      el(
        "div",
        { class: "field__row" },
        el("label", { class: "field__label grow", for: id }, t("member.talkativeness")),
        output,
      ),
      range,
      el("p", { class: "field__hint" }, t("member.talkativeness_hint")),
    )
  }

  #memory(member) {
    const isOwn = member.id === this.#parts.store.myMembership?.id
    return memberMemory(this.#parts, member, isOwn, (act) => this.#try(act))
  }

  // The author's note of this character.
  #note(member) {
    const form = authorNoteForm(this.#parts, {
      settings: member.settings,
      label: t("author_note.of_member", { name: member.display_name }),
      hint: t("author_note.of_member_hint"),
      beside: true,
      save: (note) => this.#parts.authorNotes.setForMember(member, note),
    })
    return el("details", { class: "note" }, el("summary", {}, t("author_note.title")), form)
  }

  #preset(member, role) {
    const space = this.#parts.store.openSpace?.settings?.preset ?? {}
    return presetChoice(this.#parts, {
      label: t("preset.choose"),
      hint: t("preset.choose_member_hint"),
      value: member.preset_id,
      mayChange: may(role, "settings"),
      choose: (id) => this.#parts.presets.chooseForMember(member, id),
      layers: () => ({
        member: member.settings?.preset ?? null,
        memberPresetId: member.preset_id,
        space,
        spacePresetId: space.preset_id ?? null,
      }),
    })
  }

  // Applied at once; restored if the server refuses it.
  #role(member) {
    const id = `role-${member.id}`
    const control = select(
      ROLES.map((role) => [role, t(`role.${role}`)]),
      member.role,
    )
    control.id = id
    control.dataset.act = "role"
    control.addEventListener("change", () =>
      this.#try(() => this.#parts.members.setRole(member, control.value)).then((isDone) => {
        if (!isDone) control.value = member.role
      }),
    )
    return el(
      "div",
      { class: "field" },
      el("label", { class: "field__label", for: id }, t("member.role")),
      control,
      el("p", { class: "field__hint" }, t(`role.${member.role}_hint`)),
    )
  }

  #participation(member, which, icon, label) {
    const isOn = member.participation === which
    return button(label, {
      look: "small quiet",
      icon,
      "data-act": which,
      title: t(`participation.${which}_hint`),
      "aria-pressed": String(isOn),
      click: () => this.#try(() => this.#parts.members.setParticipation(member, isOn ? "active" : which)),
    })
  }

  // Whether a person is away; it matters only where people take turns.
  #away(member) {
    if (!this.#parts.store.openSpace?.humans_take_turns && !member.is_away) return null
    return button(t("member.away"), {
      look: "small quiet",
      icon: "pause",
      "data-act": "away",
      title: t("member.away_hint"),
      "aria-pressed": String(member.is_away),
      click: () => this.#try(() => this.#parts.members.setAway(member, !member.is_away)),
    })
  }

  #iconButton(name, label, act) {
    return iconButton(name, label, { look: "small", "data-act": name, click: () => this.#try(act) })
  }

  #button(name, label, act) {
    return button(label, { look: "small quiet", icon: name, "data-act": name, click: () => this.#try(act) })
  }

  async #remove(member) {
    const name = member.display_name
    const isSure = await confirm({
      title: t("member.remove_title", { name }),
      text: t("member.remove_text", { name }),
      action: t("member.remove"),
    })
    if (isSure) await this.#parts.members.remove(member)
  }

  async #handOver(member) {
    const values = { name: member.display_name, space: this.#parts.store.openSpace.name }
    const isSure = await confirm({
      title: t("member.hand_over_title", values),
      text: t("member.hand_over_text", values),
      action: t("member.hand_over"),
    })
    if (isSure) await this.#parts.members.setRole(member, "owner")
  }

  async #leave(member) {
    const { name } = this.#parts.store.openSpace
    const isSure = await confirm({
      title: t("member.leave_title", { name }),
      text: t("member.leave_text"),
      action: t("member.leave"),
    })
    if (isSure) await this.#parts.members.leave(member)
  }

  // Returns whether it succeeded.
  async #try(act) {
    try {
      await act()
      return true
    } catch (error) {
      this.#parts.toasts.error(error)
      return false
    }
  }
}
