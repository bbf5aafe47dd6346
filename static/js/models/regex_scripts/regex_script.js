// Regex scripts of cards and presets, as the server lists them, and who may switch them off.

// What a script affects, by its number in files.
export const PLACEMENTS = { 1: "user_input", 2: "ai_output", 5: "world_info", 6: "reasoning" }

// Returns the names of what a script affects; numbers without an effect are left out.
export function affected({ placement }) {
  return placement.map((it) => PLACEMENTS[it]).filter(Boolean)
}

// Returns the marks of a script, in the order of SillyTavern's editor.
export function marks(script) {
  return ["disabled", "markdown_only", "prompt_only", "run_on_edit"].filter((it) => script[it])
}

// Returns a script as it is in a file, so that the server can test it.
export function inFile(script) {
  return {
    findRegex: script.find_regex,
    replaceString: script.replace_string,
    trimStrings: script.trim_strings,
    substituteRegex: script.substitute_regex,
  }
}

// Returns the ids that the settings of a space switch off: `kind` is `membership_ids` or `preset_ids`.
export function switchedOff(settings, kind) {
  return settings?.regex_scripts_off?.[kind] ?? []
}

// Returns the settings with the scripts of a member or preset on or off. Empty lists are not stored.
export function withSwitch(settings, { kind, id, isOn }) {
  const { regex_scripts_off: known, ...others } = settings ?? {}
  const ids = switchedOff(settings, kind).filter((it) => it !== id)
  const off = { ...known, [kind]: isOn ? ids : [...ids, id] }
  const stored = Object.fromEntries(Object.entries(off).filter(([, list]) => list.length > 0))
  return Object.keys(stored).length === 0 ? others : { ...others, regex_scripts_off: stored }
}

// Returns the ids of the presets that a space and its members use, each once.
export function presetsInUse(space, members) {
  const ids = [space.settings?.preset?.preset_id, ...members.map((it) => it.preset_id)]
  return [...new Set(ids.filter(Boolean))]
}
