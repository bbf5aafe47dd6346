// Completes `/` at the beginning of the composer with the commands that the user may use.
import { el } from "../../base/dom.js"
import { t } from "../../base/i18n.js"
import { commandAt, insertCommand, matchingCommands } from "../../models/conversation/slash_commands.js"

export default class CommandSource {
  label = t("command.list")
  note = t("command.rule")
  queryAt = commandAt
  insert = insertCommand
  #commands

  // `commands()` returns those that the user may use.
  constructor(commands) {
    this.#commands = commands
  }

  options(query) {
    return matchingCommands(this.#commands(), query)
  }

  isComplete(commands, query) {
    return commands.some(({ name }) => name === query.toLowerCase())
  }

  content({ name }) {
    return [
      el("span", { class: "completions__command" }, `/${name} `, el("span", {}, t(`command.${name}_argument`))),
      el("span", { class: "completions__kind grow" }, t(`command.${name}`)),
    ]
  }

  data({ name }) {
    return { "data-command": name }
  }
}
