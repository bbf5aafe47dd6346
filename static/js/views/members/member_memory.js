// The switches of a member's memory: whether memories are made from its messages, and whether its prompts
// contain memories. Both are on by default.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { check } from "../components/form.js"

const SWITCHES = ["learn", "recall"]

// A switch is applied at once, and restored if the server refuses the change. `attempt(act)` shows an error,
// and resolves to whether `act` succeeded.
export function memberMemory({ members }, member, isOwn, attempt) {
  const whose = isOwn ? "own" : member.kind === "character" ? "character" : "person"
  const switches = SWITCHES.map((name) => {
    const { node, control } = check({
      label: t(`member.memory_${name}`),
      hint: t(`member.memory_${name}_${whose}_hint`),
      checked: member.settings?.memory?.[name] !== false,
    })
    control.dataset.act = `memory-${name}`
    control.addEventListener("change", async () => {
      const isOn = control.checked
      const isDone = await attempt(() => members.setMemory(member, { [name]: isOn }))
      if (!isDone) control.checked = !isOn
    })
    return node
  })
  return el("fieldset", { class: "field" }, el("legend", { class: "field__label" }, t("member.memory")), switches)
}
