// Tests a regex script: a text in, the result out. The server runs the script.
import { el, icon, replace } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { submitButton } from "../components/button.js"
import { area, field, form } from "../components/form.js"

export function scriptTester(parts, script) {
  const text = field({ label: t("regex.test_text"), control: area({ rows: "2", name: "text" }) })
  const outcome = el("div", { class: "regex-script__outcome", role: "status" })
  const submit = async () => {
    replace(outcome, ...result(await parts.regexScripts.test(script, text.control.value)))
  }
  const actions = el(
    "div",
    { class: "form__actions form__actions--start" },
    submitButton(t("regex.test"), { "data-act": "test_script" }),
  )
  const node = form({ fields: { text }, submit, children: [text.node, actions] })
  return el("div", {}, node, outcome)
}

function result({ text, changed, error }) {
  if (error) return [el("p", { class: "outcome outcome--bad" }, icon("alert"), reasonOf(error))]
  const title = changed ? t("regex.test_result") : t("regex.test_nothing")
  return [el("p", { class: "field__label" }, title), el("pre", { class: "regex-script__text" }, text)]
}

// The server's message names the reason and the position in the pattern.
export function reasonOf({ message }) {
  return t("regex.error", { reason: message })
}
