// Entry point: finds out who is signed in, loads the spaces and shows the view of the address.
import AdminActions from "./actions/admin.js"
import LibraryActions from "./actions/library.js"
import ProviderActions from "./actions/providers.js"
import MemberActions from "./actions/members.js"
import CopilotActions from "./actions/copilot.js"
import FileActions from "./actions/files.js"
import InviteActions from "./actions/invites.js"
import JobActions from "./actions/jobs.js"
import AuthorNoteActions from "./actions/author_notes.js"
import BookmarkActions from "./actions/bookmarks.js"
import LorebookActions from "./actions/lorebooks.js"
import MemoryActions from "./actions/memories.js"
import PersonaActions from "./actions/personas.js"
import PictureActions from "./actions/pictures.js"
import PresetActions from "./actions/presets.js"
import RegexScriptActions from "./actions/regex_scripts.js"
import ConversationActions from "./actions/conversation.js"
import SessionActions from "./actions/session.js"
import SpaceActions from "./actions/spaces.js"
import SummaryActions from "./actions/summaries.js"
import TranslationActions from "./actions/translations.js"
import Api from "./api.js"
import { afterFirstScreen, backoff } from "./base/timing.js"
import { storage } from "./base/storage.js"
import { t } from "./base/i18n.js"
import Language from "./language.js"
import Drafts from "./models/conversation/drafts.js"
import WhisperChoices from "./models/whispers/whisper_choices.js"
import EditDrafts from "./models/message/edit_draft.js"
import InviteToken from "./models/members/invite_token.js"
import BackStack from "./models/shell/back_stack.js"
import Router, { paths } from "./router.js"
import Socket from "./socket.js"
import Store from "./store.js"
import { showNotFound, showSetUp, showSignIn } from "./views/sign_in/sign_in_page.js"
import { useBackStack } from "./views/components/dialog.js"
import { importModule, showInvitationNotices, showTurnNotice } from "./views/on_demand.js"
import FileDrop from "./views/files/file_drop.js"
import { suggestKeepingAccount } from "./views/sign_in/guest.js"
import Shell from "./views/shell/shell.js"
import { openSessionEndedDialog } from "./views/sign_in/session_ended.js"
import Title from "./views/shell/title.js"
import Toasts from "./views/components/toast.js"

const AWAY_AFTER_MS = 5000

const root = document.getElementById("app")
const api = new Api()
const socket = new Socket({ url: `${location.origin.replace(/^http/, "ws")}/ws` })
const store = new Store({ socket, storage: storage("sessionStorage") })
const local = storage("localStorage")
const tools = { api, store, socket }
const session = new SessionActions(tools)
const backStack = new BackStack(history)
const parts = {
  store,
  local,
  session,
  language: new Language({ local, session }),
  spaces: new SpaceActions(tools),
  bookmarks: new BookmarkActions(tools),
  conversation: new ConversationActions(tools),
  members: new MemberActions(tools),
  authorNotes: new AuthorNoteActions(tools),
  library: new LibraryActions(tools),
  copilot: new CopilotActions(tools),
  files: new FileActions(tools),
  jobs: new JobActions(tools),
  invites: new InviteActions(tools),
  lorebooks: new LorebookActions(tools),
  memories: new MemoryActions(tools),
  summaries: new SummaryActions(tools),
  inviteToken: new InviteToken(storage("sessionStorage")),
  providers: new ProviderActions(tools),
  personas: new PersonaActions({ ...tools, local }),
  pictures: new PictureActions(tools),
  presets: new PresetActions(tools),
  regexScripts: new RegexScriptActions(tools),
  translations: new TranslationActions(tools),
  admin: new AdminActions(tools),
  toasts: new Toasts(document.getElementById("toasts"), document.getElementById("alarm")),
  title: new Title(store),
  announcer: document.getElementById("announcer"),
}
parts.fileDrop = new FileDrop(parts)

useBackStack(backStack)
backStack.start()
start()

async function start() {
  await parts.language.start()
  const joined = location.pathname === "/join" ? await joinByInvite() : null
  if (!joined) await authenticate()
  parts.drafts = new Drafts(local, store.user.id)
  parts.whisperChoices = new WhisperChoices(local, store.user.id)
  parts.editDrafts = new EditDrafts(local, store.user.id)
  parts.reconnect = () => socket.retryNow()
  watchSession()
  watchConnection()
  socket.start()
  await retryUntilReachable(() => parts.spaces.load())
  if (joined) openFirstConversation(joined)
  const loadInvitations = () => parts.invites.load().catch(() => {})
  store.on("invitation_created", loadInvitations)
  store.on("invitations", () => showInvitationNotices(parts))
  store.on("your_turn", (event) => showTurnNotice(parts, event))
  afterFirstScreen(loadInvitations)
  parts.providers.load().catch(() => {})
  const shell = new Shell(root, parts)
  parts.router = new Router((route) => shell.show(route), backStack)
  shell.mount()
  parts.fileDrop.mount()
  parts.title.mount()
  parts.router.start()
}

// Opens the page of an invite link. Resolves with the membership of the user; null if the server has
// not been set up yet.
async function joinByInvite() {
  readInviteToken()
  const found = await retryUntilReachable(() => parts.session.discover())
  if (found === "setup") {
    history.replaceState({}, "", paths.home())
    return null
  }
  if (found === "signed_in") await parts.language.useLanguageOf(store.user)
  const { token } = parts.inviteToken
  const JoinPage = await loadJoinPage()
  const preview = () => retryUntilReachable(() => parts.invites.preview(token))
  const { user, membership, persona, isNewUser } = await new JoinPage(root, parts, { token, preview }).open()
  parts.inviteToken.clear()
  store.setUser(user)
  if (isNewUser) await parts.language.saveTo(user)
  if (persona) await parts.invites.setPersona(membership, persona).catch((error) => parts.toasts.error(error))
  return membership
}

// Resolves with the class of the page; never if it cannot be loaded, because only a reload helps then.
async function loadJoinPage() {
  const module = await importModule(() => import("./views/sign_in/join.js"))
  if (module) return module.default
  const link = { href: location.pathname, label: t("reload") }
  showNotFound(root, { title: t("load_failed.title"), text: t("load_failed.text"), link })
  return new Promise(() => {})
}

// Removes the token from the address and thereby from the history before anything else. Another invite
// link in the same tab reloads the page.
function readInviteToken() {
  parts.inviteToken.readFrom(location)
  history.replaceState({}, "", location.pathname)
  window.addEventListener("hashchange", () => {
    if (location.pathname === "/join") location.reload()
  })
}

// Sets the address to the first conversation of the space.
function openFirstConversation({ space_id: spaceId }) {
  history.replaceState({}, "", paths.conversation(parts.spaces.firstOf(spaceId)))
  if (store.user.is_guest) suggestKeepingAccount(parts)
}

// Resolves when a user is signed in.
async function authenticate() {
  const found = await retryUntilReachable(() => parts.session.discover())
  if (found === "setup") await showSetUp(root, parts)
  if (found === "signed_out") store.setUser(await showSignIn(root, parts))
  if (found === "setup") await parts.language.saveTo(store.user)
  else await parts.language.useLanguageOf(store.user)
}

// The page may be open before the server is available: tries again until there is a response.
async function retryUntilReachable(act) {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await act()
    } catch (error) {
      if (!(error.isNetwork || error.status >= 500)) throw error
      if (attempt === 1) parts.toasts.show(t("error.network"))
      await new Promise((resolve) => setTimeout(resolve, backoff(attempt)))
    }
  }
}

// When the session has ended elsewhere, the page stays as it is, with all drafts, behind a sign-in
// dialog.
function watchSession() {
  let isOpen = false
  const signInAgain = async () => {
    if (isOpen) return
    isOpen = true
    socket.stop()
    const user = await openSessionEndedDialog(parts)
    if (user.id !== store.user.id) return location.reload()
    store.setUser(user)
    isOpen = false
    socket.start()
  }
  api.onSignedOut = signInAgain
  socket.on("connect_failed", () =>
    api.session().catch((error) => {
      if (error.status === 401) signInAgain()
    }),
  )
}

function watchConnection() {
  socket.on("ready", refresh)
  window.addEventListener("offline", () => socket.interrupt())
  window.addEventListener("online", () => socket.retryNow())
  watchVisibility()
}

// A user whose tab is hidden for a while is away. When the tab is shown again, the data is refreshed.
function watchVisibility() {
  let timer = null
  let isAway = false
  const leave = () => {
    isAway = true
    socket.away(true)
  }
  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer)
    if (document.hidden) timer = setTimeout(leave, AWAY_AFTER_MS)
    else if (isAway) {
      isAway = false
      socket.away(false)
      refresh()
    }
  })
}

// Reads everything again that has no `rev`, after a lost connection and when the tab is shown again.
async function refresh() {
  try {
    const { user } = await api.session()
    // Another user has signed in, in another window: nothing of the previous user may stay on the
    // screen.
    if (user.id !== store.user.id) return location.reload()
    store.setUser(user)
    await parts.spaces.load()
    await parts.invites.load()
    const spaceId = store.openConversationDocument?.space_id
    if (spaceId) await parts.spaces.loadRoster(spaceId)
  } catch {
    // The socket reports when the next attempt makes sense; an ended session opens the sign-in dialog.
  }
}
