// The sessions of the user, with a button to sign each out.
import { el, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { shortTime } from "../../base/time.js"
import { readUserAgent } from "../../models/settings/user_agent.js"
import { button } from "../components/button.js"
import { card } from "./settings_profile.js"

export function sessionsCard(parts) {
  const list = el("ul", { "aria-busy": "true" }, el("li", { class: "soft" }, t("loading")))
  const reload = () => showSessions(parts, list, reload)
  reload()
  return card(t("sessions.title"), el("p", { class: "soft" }, t("sessions.lead")), list)
}

async function showSessions(parts, list, reload) {
  try {
    const sessions = await parts.session.sessions()
    sessions.sort((a, b) => b.current - a.current || Date.parse(b.last_seen_at) - Date.parse(a.last_seen_at))
    replace(
      list,
      sessions.map((session) => item(parts, session, reload)),
    )
  } catch (error) {
    parts.toasts.error(error)
  }
  list.removeAttribute("aria-busy")
}

function item(parts, session, reload) {
  const name = nameOf(session)
  const end = async ({ currentTarget }) => {
    currentTarget.disabled = true
    await parts.session.endSession(session.id).catch((error) => parts.toasts.error(error))
    reload()
  }
  return el(
    "li",
    { class: "list__item", "data-session": session.current ? "this" : "other" },
    el(
      "div",
      { class: "list__main" },
      el(
        "div",
        { class: "field__row" },
        el("span", { class: "truncate", title: session.user_agent }, name),
        session.current && el("span", { class: "tag" }, t("sessions.this")),
      ),
      el(
        "p",
        { class: "field__hint" },
        t("sessions.seen", { at: shortTime(Date.parse(session.last_seen_at)) }),
      ),
    ),
    !session.current &&
      button(t("sessions.end"), {
        look: "small danger",
        "aria-label": t("sessions.end_named", { name }),
        click: end,
      }),
  )
}

function nameOf({ user_agent: text }) {
  const { browser, system } = readUserAgent(text)
  if (browser && system) return t("sessions.browser_on", { browser, system })
  return browser ?? system ?? t("sessions.unknown")
}
