// Invites: the token of an address, the state of a link, the name of a browser.
import assert from "node:assert/strict"
import test from "node:test"
import InviteActions from "../../static/js/actions/invites.js"
import { readUserAgent } from "../../static/js/models/settings/user_agent.js"
import InviteToken from "../../static/js/models/members/invite_token.js"
import { renewalOf, stateOf } from "../../static/js/models/members/invites.js"
import { MemoryStorage } from "./support.mjs"

const HOUR = 3_600_000

test("a token is read from the fragment and survives a reload until it is cleared", () => {
  const storage = new MemoryStorage()
  new InviteToken(storage).readFrom({ hash: "#q1X_Ii-J" })

  const later = new InviteToken(storage)
  later.readFrom({ hash: "" })
  const kept = later.token
  later.clear()

  assert.deepEqual([kept, later.token], ["q1X_Ii-J", null])
})

test("an invalid token is not stored", () => {
  const invitation = new InviteToken(new MemoryStorage())

  for (const hash of ["", "#", "#a b", "#../x", `#${"x".repeat(201)}`]) invitation.readFrom({ hash })

  assert.equal(invitation.token, null)
})

test("another link replaces the previous one", () => {
  const invitation = new InviteToken(new MemoryStorage())

  invitation.readFrom({ hash: "#first" })
  invitation.readFrom({ hash: "#second" })

  assert.equal(invitation.token, "second")
})

test("a link is active until its time or its uses are over", () => {
  const link = { max_uses: 2, uses: 1, expires_at: new Date(HOUR).toISOString() }

  assert.equal(stateOf(link, 0), "active")
  assert.equal(stateOf({ ...link, uses: 2 }, 0), "used_up")
  assert.equal(stateOf(link, HOUR), "expired")
  assert.equal(stateOf({ ...link, max_uses: null, uses: 99, expires_at: null }, 0), "active")
})

test("a renewed link is valid as long as the first one was", () => {
  const link = {
    role: "guest",
    max_uses: 5,
    uses: 3,
    created_at: new Date(HOUR).toISOString(),
    expires_at: new Date(25 * HOUR).toISOString(),
  }

  assert.deepEqual(renewalOf(link), { role: "guest", maxUses: 5, hours: 24 })
})

test("an old link is revoked only when there is a new one", async () => {
  const calls = []
  const api = {
    createInvite: async () => {
      calls.push("create")
      if (calls.length > 2) throw new Error("refused")
      return { id: 2 }
    },
    revokeInvite: async (id) => calls.push(`revoke ${id}`),
  }
  const invites = new InviteActions({ api })
  const options = { role: "guest", maxUses: null, hours: 24 }

  await invites.replace(1, { id: 1 }, options)
  await assert.rejects(invites.replace(1, { id: 2 }, options))

  assert.deepEqual(calls, ["create", "revoke 1", "create"])
})

test("a user agent is read as browser and system", () => {
  const names = (text) => Object.values(readUserAgent(text))
  const chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36"
  const edge = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/131.0.0.0 Safari/537.36 Edg/131.0.0.0"
  const phone =
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 Version/18.1 Mobile/15E148 Safari/604.1"

  assert.deepEqual(names(chrome), ["Chrome", "Linux"])
  assert.deepEqual(names(edge), ["Edge", "Windows"])
  assert.deepEqual(names(phone), ["Safari", "iPhone"])
  assert.deepEqual(names("curl/8.5.0"), [null, null])
  assert.deepEqual(names(null), [null, null])
})

test("an answered invitation is removed, and a refused answer keeps it", async () => {
  const store = {
    invitations: [{ id: 1 }, { id: 2 }, { id: 3 }],
    setInvitations(list) {
      this.invitations = list
    },
  }
  const sent = []
  const api = {
    acceptInvitation: async (id, body) => {
      sent.push([id, body])
      if (id === 3) throw new Error("name_taken_here")
      return { membership: { id: 9 } }
    },
    declineInvitation: async (id) => sent.push([id]),
  }
  const invites = new InviteActions({ api, store })

  const membership = await invites.accept(1, "Visitor")
  await invites.decline(2)
  await assert.rejects(() => invites.accept(3))

  assert.deepEqual(membership, { id: 9 })
  assert.deepEqual(sent, [[1, { display_name: "Visitor" }], [2], [3, {}]])
  assert.deepEqual(store.invitations, [{ id: 3 }])
})
