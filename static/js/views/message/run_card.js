// The card of a run that ended without a message: what happened, and what to do.
import { bdi, el, icon, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { may } from "../../models/members/rights.js"
import { button } from "../components/button.js"
import { explainCancel, explainRun } from "../components/error_messages.js"
import { addsSwipe } from "../../models/runs/run_notice.js"
import { changeModel } from "../on_demand.js"

export default class RunCard {
  #root
  #parts
  #signature = null

  constructor(root, parts) {
    this.#root = root
    this.#parts = parts
  }

  update() {
    const { store } = this.#parts
    const { openConversation } = store
    const { run } = openConversation.notice
    // Includes the name, because the roster may arrive after the run.
    const facts = run && [run.id, run.status, run.error, this.#nameOf(run), openConversation.queue.state]
    const signature = run && JSON.stringify([...facts, store.openSpace?.my_role])
    if (signature === this.#signature) return
    this.#signature = signature
    replace(
      this.#root,
      run && (run.status === "failed" ? this.#failed(run, openConversation.queue) : this.#ended(run)),
    )
    if (run?.status === "failed") document.getElementById("alarm").textContent = explainRun(run)
  }

  #failed(run, queue) {
    const name = this.#nameOf(run)
    return el(
      "section",
      {
        class: "card card--failed",
        "data-card": "failed",
        "data-run-id": run.id,
        "aria-label": t("failed.label", { name }),
      },
      el("div", { class: "card__icon" }, icon("alert")),
      el(
        "div",
        { class: "card__main" },
        el("h3", { class: "card__title" }, t("failed.title", { name })),
        el("p", { class: "card__text" }, explainRun(run)),
        run.error?.message && el("p", { class: "card__detail" }, bdi(run.error.message)),
        el("div", { class: "card__actions" }, this.#actions(queue)),
      ),
    )
  }

  #actions(queue) {
    const { store, conversation } = this.#parts
    if (!may(store.openSpace?.my_role, "control")) return null
    return [
      this.#button(t("retry"), "retry", "primary", () => conversation.retry()),
      queue.round && this.#button(t("skip"), "skip", "", () => conversation.skip()),
      store.user.role === "admin" &&
        button(t("failed.change_model"), { look: "small quiet", click: () => changeModel(this.#parts) }),
    ]
  }

  #button(label, name, look, act) {
    const click = async ({ currentTarget }) => {
      currentTarget.disabled = true
      await act().catch((error) => this.#parts.toasts.error(error))
      currentTarget.disabled = false
    }
    return button(label, { look: `small ${look}`, icon: name, click })
  }

  #ended(run) {
    const isSkipped = run.status === "skipped"
    return el(
      "p",
      { class: "card card--slim", "data-card": run.status },
      el("span", { class: "card__icon" }, icon(isSkipped ? "skip" : "stop")),
      el("span", {}, this.#endOf(run)),
    )
  }

  #endOf(run) {
    const name = this.#nameOf(run)
    const isOvertaken = run.canceled_because === "superseded_by_message" && addsSwipe(run)
    if (run.skipped_because === "target_hidden") return t("skipped.target_hidden", { name })
    if (run.status === "skipped" || isOvertaken) return t(`skipped.${run.kind}`, { name })
    const reason = explainCancel(run)
    return reason ? t("canceled.with_reason", { name, reason }) : t("canceled.text", { name })
  }

  #nameOf({ speaker_space_membership_id: id }) {
    if (id === null) return t("director.name")
    return this.#parts.store.openRoster.nameOf(id) ?? t("message.unknown_author")
  }
}
