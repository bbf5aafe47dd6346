// Tools of a space, and the tool calls of a message.
import assert from "node:assert/strict"
import test from "node:test"
import OpenConversation from "../../static/js/models/conversation/open_conversation.js"
import { serversOf, toolCallsOf, usesOf, withTools } from "../../static/js/models/characters/tools.js"

test("tools that are not allowed are not stored, and other settings are kept", () => {
  const settings = { preset: { top_p: 1 }, tools: { dice: "allowed" }, tool_servers: [{ label: "a" }] }

  assert.deepEqual(usesOf(settings), { dice: "allowed", time: "off", web_fetch: "off", memory: "off" })
  assert.deepEqual(withTools(settings, { uses: { dice: "off", time: "allowed" }, servers: [] }), {
    preset: { top_p: 1 },
    tools: { time: "allowed" },
  })
  assert.deepEqual(withTools({}, { uses: {}, servers: [{ label: "b" }] }), { tool_servers: [{ label: "b" }] })
})

test("malformed settings and metadata are ignored", () => {
  assert.deepEqual(usesOf({ tools: { dice: "often" } }).dice, "off")
  assert.deepEqual(serversOf({ tool_servers: 5 }), [])
  assert.deepEqual(toolCallsOf({ metadata: { tool_calls: "x" } }), [])
  const [call, ...others] = toolCallsOf({ metadata: { tool_calls: [{ tool: "dice", output: 7 }, null] } })
  assert.deepEqual([call.tool, call.output, others], ["dice", undefined, []])
})

test("an approval is pending until it is decided or its run ends", () => {
  const conversation = new OpenConversation({ conversationId: 1 })
  const approval = { id: 5, run_id: "r", status: "pending" }
  const running_run = { id: "r", speaker_space_membership_id: 2 }
  const snapshot = { messages: [], state: "generating", running_run, tool_approvals: [approval] }
  conversation.restore({ rev: 1, snapshot })

  assert.deepEqual([...conversation.approvals.keys()], [5])
  const recorded = (id, status) => conversation.apply({ type: "tool_approval_updated", approval: { ...approval, id, status } })
  assert.equal(recorded(6, "pending"), "approvals")
  recorded(5, "approved")
  assert.deepEqual([...conversation.approvals.keys()], [6])
  conversation.apply({ type: "typing_stop", run_id: "r" })
  assert.deepEqual([...conversation.approvals.keys()], [])
})
