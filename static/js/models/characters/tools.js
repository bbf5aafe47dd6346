// Tools of characters: which ones a space allows, and the calls that a message records.
import { t } from "../../base/i18n.js"

export const TOOLS = ["dice", "time", "web_fetch", "memory"]
export const USES = ["off", "allowed", "with_approval"]

// Returns the translated name of a built-in tool; other tools keep the name of their server.
export function toolName(tool) {
  return TOOLS.includes(tool) ? t(`tool.${tool}`) : tool
}

// Returns the tool calls recorded in the metadata of a message; malformed metadata is ignored.
export function toolCallsOf(message) {
  const calls = message?.metadata?.tool_calls
  if (!Array.isArray(calls)) return []
  return calls.filter((it) => typeof it?.tool === "string").map(plain)
}

// Returns for each built-in tool how the space allows its use.
export function usesOf(settings) {
  const uses = settings?.tools ?? {}
  return Object.fromEntries(TOOLS.map((name) => [name, USES.includes(uses[name]) ? uses[name] : "off"]))
}

export function serversOf(settings) {
  return Array.isArray(settings?.tool_servers) ? settings.tool_servers : []
}

// Returns the settings with these tools; all other settings are kept.
export function withTools(settings, { uses, servers }) {
  const { tools: _, tool_servers: __, ...others } = settings ?? {}
  const used = Object.entries(uses).filter(([, use]) => use !== "off")
  return {
    ...others,
    ...(used.length > 0 && { tools: Object.fromEntries(used) }),
    ...(servers.length > 0 && { tool_servers: servers }),
  }
}

function plain({ tool, arguments: args, output, error, approved_by: by }) {
  const text = (it) => (typeof it === "string" ? it : undefined)
  return { tool, arguments: text(args) ?? "", output: text(output), error: text(error) ?? "", approved_by: text(by) }
}
