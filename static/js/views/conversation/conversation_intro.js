// The introduction above the first message: title, next step, and a notice about the demo model.
import { bdi, el, icon, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { list } from "../../base/time.js"
import { modelChoiceOf } from "../../models/providers/provider_kinds.js"
import { may } from "../../models/members/rights.js"
import { button } from "../components/button.js"
import { connectModel, openCharacterDialog } from "../on_demand.js"

const DISMISSED = "troupe.demo_notice_dismissed"

export default class ConversationIntro {
  #root
  #parts
  #signature = null

  constructor(root, parts) {
    this.#root = root
    this.#parts = parts
  }

  update() {
    // Before the snapshot it is unknown whether there are older messages.
    if (!this.#parts.store.openConversation?.isReady) return
    const facts = this.#facts()
    const signature = JSON.stringify(facts)
    if (signature === this.#signature) return
    this.#signature = signature
    if (facts.mayHaveOlder)
      return replace(
        this.#root,
        el("p", { class: "timeline__loading", role: "status" }, t("timeline.loading")),
      )
    replace(this.#root, this.#head(facts), facts.showsNotice && this.#notice(facts))
  }

  #facts() {
    const { store, local } = this.#parts
    const { openConversation, openSpace: space, openConversationDocument: conversation, openRoster: roster } = store
    return {
      mayHaveOlder: openConversation?.timeline.mayHaveOlder && openConversation.timeline.oldestSeq !== null,
      title: conversation?.title || space?.name,
      description: space?.description ?? "",
      names: roster.characters.map((member) => member.display_name),
      mayManageCharacters: may(space?.my_role, "characters"),
      isAdmin: store.user.role === "admin",
      showsNotice: this.#isDemoSpeaking(roster) && local.getItem(DISMISSED) === null,
    }
  }

  // False if all characters have a model of their own.
  #isDemoSpeaking({ characters }) {
    const { providers, isDemoOnly } = this.#parts.store
    const isOfDemo = (member) => (modelChoiceOf(member, providers)?.provider.kind ?? "demo") === "demo"
    return providers.length > 0 && isDemoOnly && (characters.length === 0 || characters.some(isOfDemo))
  }

  #head({ title, description, names, mayManageCharacters }) {
    const isAlone = names.length === 0
    const click = () => openCharacterDialog(this.#parts, this.#parts.store.openSpace.id)
    return el(
      "header",
      { class: "intro" },
      el("h2", { class: "intro__title" }, bdi(title)),
      el(
        "p",
        { class: "intro__text" },
        isAlone ? t("intro.no_characters") : description || t("intro.characters", { names: list(names) }),
      ),
      isAlone &&
        mayManageCharacters &&
        el(
          "div",
          { class: "intro__actions" },
          button(t("member.add"), { look: "primary", icon: "plus", click }),
        ),
    )
  }

  #notice({ isAdmin }) {
    const dismiss = () => {
      this.#parts.local.setItem(DISMISSED, "1")
      this.update()
    }
    return el(
      "section",
      { class: "card", "data-card": "demo", "aria-label": t("demo.title") },
      el("div", { class: "card__icon" }, icon("plug")),
      el(
        "div",
        { class: "card__main" },
        el("h3", { class: "card__title" }, t("demo.title")),
        el("p", { class: "card__text" }, isAdmin ? t("demo.text") : t("demo.text_member")),
        el(
          "div",
          { class: "card__actions" },
          isAdmin &&
            button(t("demo.connect"), { look: "small primary", click: () => connectModel(this.#parts) }),
          button(t("demo.later"), { look: "small quiet", click: dismiss }),
        ),
      ),
    )
  }
}
