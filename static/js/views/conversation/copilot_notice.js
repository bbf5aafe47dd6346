// Replaces the composer while the copilot is active: its member, the messages left, and a button to
// take over.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { button } from "../components/button.js"

// `copilot` is the result of `describeCopilot`.
export function copilotNotice(parts, { status, left }, name) {
  const act = (run) => async (event) => {
    const { currentTarget } = event
    currentTarget.disabled = true
    await run().catch((error) => parts.toasts.error(error))
    currentTarget.disabled = false
  }
  return el(
    "div",
    { class: "copilot-notice", "data-copilot": status, "data-left": left },
    el(
      "p",
      { class: "copilot-lock__text", role: "status" },
      t("copilot.speaks", { name, n: left }),
      status === "blocked" && ` ${t("copilot.blocked")}`,
      status === "waiting" && ` ${t("copilot.waiting")}`,
    ),
    el(
      "div",
      { class: "copilot-notice__actions" },
      status === "waiting" &&
        button(t("copilot.resume"), { icon: "play", look: "quiet", click: act(() => parts.copilot.resume()) }),
      button(t("copilot.take_over"), {
        icon: "edit",
        look: "primary",
        click: act(() => parts.copilot.takeOver()),
      }),
    ),
  )
}
