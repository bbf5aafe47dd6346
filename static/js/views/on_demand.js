// Dialogs and pages that the first screen does not show. The module of each is loaded when it is first
// opened.
import { t } from "../base/i18n.js"

// The number of dialogs that were requested, and of times that the user has left the page.
let nRequests = 0
let closeNotice = null

// Resolves with the module, or null if it cannot be loaded: the connection is lost, or the server was
// updated and has no file of this name any more. `load` imports it.
export async function importModule(load) {
  try {
    return await load()
  } catch (error) {
    console.error("failed to load a module", error)
    return null
  }
}

// Like `importModule`; a notice explains a failure. It stays until it is closed or replaced by the next
// one, so that there is time to use its button.
export async function loadModule({ toasts }, load) {
  const module = await importModule(load)
  if (module) return module
  closeNotice?.()
  const action = { label: t("reload"), run: () => location.reload() }
  closeNotice = toasts.show(t("error.load"), { action, staysMs: null })
  return null
}

// Drops a dialog whose module is still loading, because the user goes to another page.
export function dropRequestedDialog() {
  nRequests += 1
}

// Returns the function `name` of the module, which opens a dialog. All of them take `parts` first. The
// dialog is not opened if the user requests or opens another one, or leaves the page, while the module
// loads.
function dialogOnDemand(load, name) {
  return async (parts, ...rest) => {
    const request = ++nRequests
    const nDialogs = countDialogs()
    const module = await loadModule(parts, load)
    if (request !== nRequests || nDialogs !== countDialogs()) return
    return module?.[name](parts, ...rest)
  }
}

function countDialogs() {
  return document.querySelectorAll("dialog[open]").length
}

const providers = () => import("./providers/provider_dialog.js")
const prompts = () => import("./prompt/prompt_dialog.js")

export const openCharacterDialog = dialogOnDemand(() => import("./characters/character_dialog.js"), "openCharacterDialog")
export const openSearch = dialogOnDemand(() => import("./conversation/search_dialog.js"), "openSearch")
export const openSpaceImportDialog = dialogOnDemand(() => import("./files/import_dialog.js"), "openSpaceImportDialog")
export const openChatImportDialog = dialogOnDemand(() => import("./files/import_dialog.js"), "openChatImportDialog")
export const openInvitationDialog = dialogOnDemand(() => import("./members/invitation_dialog.js"), "openInvitationDialog")
export const openInviteDialog = dialogOnDemand(() => import("./members/invite_dialog.js"), "openInviteDialog")
export const showPromptOfMessage = dialogOnDemand(prompts, "showPromptOfMessage")
export const showPromptOfRun = dialogOnDemand(prompts, "showPromptOfRun")
export const connectModel = dialogOnDemand(providers, "connectModel")
export const changeModel = dialogOnDemand(providers, "changeModel")
export const openSummariesDialog = dialogOnDemand(() => import("./summaries/summaries_dialog.js"), "openSummariesDialog")
export const openEditConflict = dialogOnDemand(() => import("./message/edit_conflict.js"), "openEditConflict")
export const openRevisionsDialog = dialogOnDemand(() => import("./message/revisions_dialog.js"), "openRevisionsDialog")
export const openMemoryImport = dialogOnDemand(() => import("./memories/memory_import.js"), "openMemoryImport")
export const openReactionPicker = dialogOnDemand(() => import("./message/reaction_picker.js"), "openReactionPicker")
export const openPictureDialog = dialogOnDemand(() => import("./message/picture_dialog.js"), "openPictureDialog")
export const openRecipientsDialog = dialogOnDemand(
  () => import("./whispers/recipients_dialog.js"),
  "openRecipientsDialog",
)
export const openBookmarksDialog = dialogOnDemand(() => import("./conversation/bookmarks_dialog.js"), "openBookmarksDialog")
export const openLearnedDialog = dialogOnDemand(() => import("./memories/learned_dialog.js"), "openLearnedDialog")
export const openPruneDialog = dialogOnDemand(() => import("./memories/prune_dialog.js"), "openPruneDialog")
export const openNextSpeakerDialog = dialogOnDemand(
  () => import("./queue/next_speaker_dialog.js"),
  "openNextSpeakerDialog",
)
export const openRoundDialog = dialogOnDemand(() => import("./queue/round_dialog.js"), "openRoundDialog")

let hasInvitationNotices = false

// Shows a notice for each pending invitation, and removes those of invitations that were answered.
export async function showInvitationNotices(parts) {
  hasInvitationNotices ||= parts.store.invitations.length > 0
  if (!hasInvitationNotices) return
  const module = await importModule(() => import("./members/invitation_notice.js"))
  module?.showInvitationNotices(parts)
}

// Shows the notice that it is the user's turn.
export async function showTurnNotice(parts, event) {
  const module = await importModule(() => import("./queue/turn_notice.js"))
  module?.showTurnNotice(parts, event)
}

// Resolves with the importers of dropped files, or null if their module cannot be loaded.
export async function loadImporters(parts) {
  const module = await loadModule(parts, () => import("./files/importers.js"))
  return module && module.importers(parts)
}
