// Tools of characters: which a space allows, and what a message tells of them.
import { t } from "../../base/i18n.js"

export const TOOLS = ["dice", "time", "web_fetch"]
export const USES = ["off", "allowed", "with_approval"]

// As people know it; a tool of a server is called as its server calls it.
export function toolName(tool) {
  return TOOLS.includes(tool) ? t(`tool.${tool}`) : tool
}

// The calls that a message tells of, whatever its metadata hold.
export function toolCallsOf(message) {
  const calls = message?.metadata?.tool_calls
  if (!Array.isArray(calls)) return []
  return calls.filter((it) => typeof it?.tool === "string").map(plain)
}

// How a space lets its characters use each tool of the house.
export function usesOf(settings) {
  const uses = settings?.tools ?? {}
  return Object.fromEntries(TOOLS.map((name) => [name, USES.includes(uses[name]) ? uses[name] : "off"]))
}

export function serversOf(settings) {
  return Array.isArray(settings?.tool_servers) ? settings.tool_servers : []
}

// The settings with these tools; what else they hold stays.
export function withTools(settings, { uses, servers }) {
  const { tools: _, tool_servers: __, ...others } = settings ?? {}
  const used = Object.entries(uses).filter(([, use]) => use !== "off")
  return {
    ...others,
    ...(used.length > 0 && { tools: Object.fromEntries(used) }),
    ...(servers.length > 0 && { tool_servers: servers }),
  }
}

function plain({ tool, arguments: asked, output, error, approved_by: by }) {
  const text = (it) => (typeof it === "string" ? it : undefined)
  return { tool, arguments: text(asked) ?? "", output: text(output), error: text(error) ?? "", approved_by: text(by) }
}
