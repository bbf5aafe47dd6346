// The switches of a member's memory: whether memories are made from its messages, and whether its prompts
// contain memories; both are on by default. For a character also whether its prompts contain only what it
// heard; this is off by default.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { check } from "../components/form.js"

const SWITCHES = ["learn", "recall"]

// A switch is applied at once, and restored if the server refuses the change. `attempt(act)` shows an error,
// and resolves to whether `act` succeeded.
export function memberMemory({ members }, member, isOwn, attempt) {
  const whose = isOwn ? "own" : member.kind === "character" ? "character" : "person"
  const switches = SWITCHES.map((name) =>
    memorySwitch(`memory-${name}`, attempt, {
      label: t(`member.memory_${name}`),
      hint: t(`member.memory_${name}_${whose}_hint`),
      checked: member.settings?.memory?.[name] !== false,
      set: (isOn) => members.setMemory(member, { [name]: isOn }),
    }),
  )
  if (member.kind === "character")
    switches.push(
      memorySwitch("memory-heard", attempt, {
        label: t("member.heard"),
        hint: t("member.heard_hint"),
        checked: member.settings?.remembers_only_what_it_heard === true,
        set: (isOn) => members.setRemembersOnlyHeard(member, isOn),
      }),
    )
  return el("fieldset", { class: "field" }, el("legend", { class: "field__label" }, t("member.memory")), switches)
}

function memorySwitch(name, attempt, { label, hint, checked, set }) {
  const { node, control } = check({ label, hint, checked })
  control.dataset.act = name
  control.addEventListener("change", async () => {
    const isOn = control.checked
    if (!(await attempt(() => set(isOn)))) control.checked = !isOn
  })
  return node
}
